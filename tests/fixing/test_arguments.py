"""Edits of the arguments of calls."""

from __future__ import annotations

import ast

import pytest

from tests.fixing.repairing import call_of, fixed, repaired
from trainlint.fixing.editor import Editor


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(k=1)\n"),
        ("f( )\n", "f( k=1)\n"),
        ("f(a)\n", "f(a, k=1)\n"),
        ("f( a )\n", "f( a, k=1 )\n"),
        ("f(a,)\n", "f(a, k=1,)\n"),
        ("f(a, *b)\n", "f(a, *b, k=1)\n"),
        ("f(a, **b)\n", "f(a, k=1, **b)\n"),
        ("f(**b)\n", "f(k=1, **b)\n"),
        ("f(x for x in y)\n", "f((x for x in y), k=1)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b,\n  k=1)\n"),
        ("f(\n    a,\n)\n", "f(\n    a,\n    k=1,\n)\n"),
        ("f(\n    a\n)\n", "f(\n    a,\n    k=1\n)\n"),
        (
            "f(\n    a,  # one\n    b,  # two\n)\n",
            "f(\n    a,  # one\n    b,  # two\n    k=1,\n)\n",
        ),
        ("f(\n    a,\n    b  # two\n)\n", "f(\n    a,\n    b,  # two\n    k=1\n)\n"),
        ("f(\n\ta, # one\n\t**b)\n", "f(\n\ta, # one\n\tk=1,\n\t**b)\n"),
        ("f(\n    # nothing yet\n)\n", "f(\n    # nothing yet\nk=1)\n"),
    ],
)
def test_adding_a_keyword(before: str, after: str) -> None:
    assert repaired(before, lambda e, tree: e.add_argument(call_of(tree, "f"), "k=1")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(a)\n", "f(a, x)\n"), ("f(k=1)\n", "f(x, k=1)\n"), ("f(a, k=1)\n", "f(a, x, k=1)\n")],
)
def test_adding_a_positional_argument(before: str, after: str) -> None:
    assert repaired(before, lambda e, tree: e.add_argument(call_of(tree, "f"), "x")) == after


@pytest.mark.parametrize(
    ("before", "argument", "after"),
    [
        ("f(a)\n", 0, "f()\n"),
        ("f(\n    a,\n)\n", 0, "f()\n"),
        ("f(a, b)\n", 0, "f(b)\n"),
        ("f(a, b)\n", 1, "f(a)\n"),
        ("f(a, b, )\n", 1, "f(a, )\n"),
        ("f(a, k = 1, l=2)\n", "k", "f(a, l=2)\n"),
        ("f(k=1, *a)\n", 0, "f(k=1)\n"),
        ("f(\n    a,\n    k=1,\n)\n", "k", "f(\n    a,\n)\n"),
        ("f(\n    a,\n    k=1\n)\n", "k", "f(\n    a\n)\n"),
        ("f(\n    a,  # one\n    k=1,  # two\n)\n", "k", "f(\n    a,  # one\n)\n"),
        ("f(\n    a,  # one\n    k=1)\n", "k", "f(\n    a,  # one\n    )\n"),
        ("f(a, b)\n", 2, None),
        ("f(a, b)\n", "k", None),
    ],
)
def test_removing(before: str, argument: str | int, after: str | None) -> None:
    result = fixed(before, lambda e, tree: e.remove_argument(call_of(tree, "f"), argument))
    assert result.text == (before if after is None else after)
    assert bool(result.applied) == (after is not None)


def test_several_edits_of_one_call() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        call = call_of(tree, "f")
        editor.rename_function(call, "g")
        editor.remove_argument(call, 0)
        editor.remove_argument(call, 1)
        editor.rename_argument(call, "old", "new")
        editor.add_argument(call, "k=1")
        editor.replace(call.args[2], "d + 1")

    assert repaired("x.f(a, b, c, old = 2)\n", repair) == "x.g(d + 1, new = 2, k=1)\n"


def test_setting_replaces_or_adds() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.set_argument(call_of(tree, "f"), "k", "not x")
        editor.set_argument(call_of(tree, "g"), "k", "2")

    assert repaired("f(k = 1, l=2), g(0)\n", repair) == "f(k = not x, l=2), g(0, k=2)\n"


@pytest.mark.parametrize(
    ("before", "first", "second", "after"),
    [
        ("f(target,  output)\n", 0, 1, "f(output,  target)\n"),
        ("f(input=t, target=o)\n", "input", "target", "f(input=o, target=t)\n"),
        ("f(t, target=o)\n", 0, "target", "f(o, target=t)\n"),
        ("f(\n  t,  # one\n  o  # two\n)\n", 0, 1, "f(\n  o,  # one\n  t  # two\n)\n"),
        ("f(*t, o)\n", 0, 1, "f(*t, o)\n"),
    ],
)
def test_swapping(before: str, first: str | int, second: str | int, after: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.swap_arguments(call_of(tree, "f"), first, second)

    assert fixed(before, repair).text == after
