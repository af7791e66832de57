"""Which repairs are carried out together, and what is never broken."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading

import pytest

from tests.fixing.repairing import (
    RepairOfTree,
    call_of,
    fixed,
    nodes,
    repaired,
    report_of,
    statement_of,
)
from trainlint.finding import Applicability
from trainlint.fixing import CannotFix, fix_source
from trainlint.fixing.editor import Editor


def renaming(old: str, new: str) -> RepairOfTree:
    """Rename the first function called ``old``."""
    return lambda editor, tree: editor.rename_function(call_of(tree, old), new)


def removing(code: str) -> RepairOfTree:
    """Remove the first statement that begins with ``code``."""
    return lambda editor, tree: editor.remove(statement_of(tree, code))


def test_unsafe_repairs_wait_to_be_asked_for() -> None:
    report = report_of("f()\n", renaming("f", "g"), Applicability.UNSAFE)
    assert fix_source("f()\n", [report], unsafe=False).applied == []
    result = fix_source("f()\n", [report], unsafe=True)
    assert (result.text, result.applied) == ("g()\n", [report])


def test_a_repair_is_made_whole_or_not_at_all() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.rename_function(call_of(tree, "f"), "g")
        raise CannotFix("no way")

    assert fixed("f()\n", repair).text == "f()\n"


def test_faults_of_a_repair_function_are_not_hidden() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        raise KeyError("our fault")

    with pytest.raises(KeyError):
        fixed("f()\n", repair)


def test_a_repair_that_breaks_the_file_is_dropped_alone() -> None:
    def breaking(editor: Editor, tree: ast.Module) -> None:
        editor.replace_statement(statement_of(tree, "b"), "return 1")
        editor.rename_argument(call_of(tree, "f"), "k", "l")

    text = "f(k=1, l=2)\nb\nprint()\n"
    result = fixed(text, breaking, renaming("print", "log"), renaming("f", "g"))
    assert result.text == "g(k=1, l=2)\nb\nlog()\n"
    assert len(result.applied) == 2


def test_repairs_of_one_place_wait_for_the_next_round() -> None:
    text = "if f(x):\n    y\n"
    result = fixed(text, renaming("f", "g"), removing("if"), renaming("f", "h"))
    assert result.text == "if g(x):\n    y\n"
    assert len(result.applied) == 1


def test_repairs_inside_one_statement_combine() -> None:
    def adding(editor: Editor, tree: ast.Module) -> None:
        editor.add_argument(call_of(tree, "f"), "k=1")

    def above(editor: Editor, tree: ast.Module) -> None:
        editor.insert_before(tree.body[0], "above()")

    result = repaired("f(x)\n", renaming("f", "g"), adding, above)
    assert result == "above()\ng(x, k=1)\n"


def test_two_insertions_at_one_place_wait() -> None:
    def above(editor: Editor, tree: ast.Module) -> None:
        editor.insert_before(tree.body[0], "o.zero_grad()")

    assert fixed("x\n", above, above).text == "o.zero_grad()\nx\n"


def test_edits_of_the_text() -> None:
    text = "é = 1  # trainlint: ignore[a]\n# trainlint: ignore[b]\nx\n"

    def trailing(editor: Editor, tree: ast.Module) -> None:
        editor.replace_text(1, 5, 1, len("é = 1  # trainlint: ignore[a]"), "")

    def whole_line(editor: Editor, tree: ast.Module) -> None:
        editor.replace_text(2, 0, 3, 0, "")

    assert repaired(text, trailing, whole_line) == "é = 1\nx\n"


def test_edits_of_text_and_of_nodes_take_turns() -> None:
    def comment(editor: Editor, tree: ast.Module) -> None:
        editor.replace_text(1, 3, 1, 8, "")

    text = "f()  # c\n"
    assert fixed(text, renaming("f", "g"), comment).text == "g()  # c\n"
    assert fixed(text, comment, renaming("f", "g")).text == "f()\n"


def test_places_outside_the_text_are_refused() -> None:
    assert not fixed("x\n", lambda e, _: e.replace_text(7, 0, 7, 1, "")).applied
    assert not fixed("x\n", lambda e, _: e.replace_text(1, 0, 1, 9, "")).applied


@pytest.mark.parametrize(
    "text",
    [
        "f()",
        "\ufefff()\r\n",
        "x = 1\r\nf()\n\r\n",
        "class A:\n\tdef m(self):\n\t\tf()\n",
        "\x0c\nx = '''\n\x0c\n'''\n\x0c\nf()\n",
        "if x: pass\nelse: f()  \n   # end",
        "# -*- coding: latin-1 -*-\nf('é')\n",
        "x = 1 ;f() ; \\\n  y = 2\n",
        "async def g():\n  async for x in y: f()\n\n\n\n",
        "x = (\n\n  # c\n  f()\n\n)\n",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    report = report_of(text.removeprefix("\ufeff"), renaming("f", "renamed"))
    result = fix_source(text, [report], unsafe=False)
    assert result.text == text.replace("f(", "renamed(")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join(["f()"] * 900),
        "x = f()" + ".a" * 900,
        "if f(): pass\n" + "elif a: pass\n" * 900,
        "x = " + " and ".join(["f()"] * 20_000),
        "x = (" + "'a' " * 5_000 + ", f())",
        "f()\nx = [" + "1, " * 400_000 + "]",
        "f()\n\x0cg()\n",
    ],
)
def test_what_libcst_cannot_bear_is_left_alone(text: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.ensure_import("import torch")

    report = report_of("f()\n", repair)
    assert fix_source(text, [report], unsafe=False) == fixed_nothing(text)


def fixed_nothing(text: str) -> object:
    """The result of a round without repairs."""
    return fix_source(text, [], unsafe=False)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join(["f()"] * 300),
        "if f(): pass\n" + "elif a: pass\n" * 300,
        "x = " + " or ".join(["f()"] * 300),
        "x = " + "(" * 150 + "f()" + ")" * 150,
    ],
)
def test_deep_nesting_within_reason_is_edited(text: str) -> None:
    limits = sys.getrecursionlimit(), threading.stack_size()
    assert repaired(text, renaming("f", "g")) == text.replace("f()", "g()", 1)
    assert limits == (sys.getrecursionlimit(), threading.stack_size())


def test_libcst_is_loaded_only_to_fix() -> None:
    code = (
        "import sys; from trainlint.fixing import fix_source;"
        "fix_source('f()', [], unsafe=True); sys.exit('libcst' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_node_of_an_f_string_that_is_found_is_the_right_one() -> None:
    text = "x = f'''{a\n+ f(1)} {f(2)!r:>{f(3)}}''' + f'{f(4)}'\n"
    for number in range(4):
        result = fixed(text, renaming_call(number))
        if result.applied:
            assert result.text == text.replace(f"f({number + 1})", f"g({number + 1})")


def renaming_call(number: int) -> RepairOfTree:
    """Rename what the call with this number calls."""
    return lambda editor, tree: editor.rename_function(nodes(tree, ast.Call)[number], "g")
