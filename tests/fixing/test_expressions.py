"""Edits of expressions, names and parentheses."""

from __future__ import annotations

import ast

import pytest

from tests.fixing.repairing import RepairOfTree, call_of, fixed, nodes, repaired, source
from trainlint.fixing.editor import Editor


def unwrap(function: str, index: int = 0) -> RepairOfTree:
    """Keep only one argument of the first call of ``function``."""

    def repair(editor: Editor, tree: ast.Module) -> None:
        call = call_of(tree, function)
        editor.replace_with_node(call, call.args[index])

    return repair


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss = ce(softmax(z, 1), y)\n", "loss = ce(z, y)\n"),
        ("loss = ce(softmax( z , dim = 1 ), y)  # keep\n", "loss = ce(z, y)  # keep\n"),
        ("p = softmax(a + b, 1) * c\n", "p = (a + b) * c\n"),
        ("p = softmax(a * b, 1) + c\n", "p = a * b + c\n"),
        ("p = softmax(a + b, 1).mean()\n", "p = (a + b).mean()\n"),
        ("p = -softmax(a ** b, 1)\n", "p = -a ** b\n"),
        ("p = softmax(-a, 1) ** b\n", "p = (-a) ** b\n"),
        ("p = c - softmax(a - b)\n", "p = c - (a - b)\n"),
        ("p = c - softmax((a - b))\n", "p = c - (a - b)\n"),
        ("p = (softmax(a - b))\n", "p = (a - b)\n"),
        ("p = softmax((a, b))\n", "p = (a, b)\n"),
        ("p = softmax(a if b else c) or d\n", "p = (a if b else c) or d\n"),
        ("p = softmax(x)if a else b\n", "p = (x)if a else b\n"),
        ("assert softmax((a, b)), 'm'\n", "assert (a, b), 'm'\n"),
        ("p = softmax(x := f())\n", "p = (x := f())\n"),
        ("p = [softmax(lambda: 0) for _ in x]\n", "p = [lambda: 0 for _ in x]\n"),
        ("p = [q for q in softmax(a if b else c)]\n", "p = [q for q in (a if b else c)]\n"),
        ("x = yield softmax(a + b)\n", "x = yield a + b\n"),
        ("async def f(): return await softmax(a + b)\n", "async def f(): return await (a + b)\n"),
        ("p = softmax(*a)[0]\n", None),
        ("p = é('ü', softmax(ñ, 1))  # ß\n", "p = é('ü', ñ)  # ß\n"),
        ("p = softmax(\n    a +\n    b\n)\n", "p = (a +\n    b)\n"),
        ("p = softmax(\n    net(\n        x)\n)\n", "p = net(\n        x)\n"),
        ("p = q(softmax(\n    a +\n    b\n), 1)\n", "p = q(a +\n    b, 1)\n"),
        ("p = sum(softmax(x for x in y))\n", "p = sum(x for x in y)\n"),
        ("p = sum(softmax(x for x in y), 0)\n", "p = sum((x for x in y), 0)\n"),
        ("print(f'{softmax(a + b):.2f}')\n", "print(f'{a + b:.2f}')\n"),
    ],
)
def test_unwrapping_keeps_the_meaning(before: str, after: str | None) -> None:
    result = fixed(before, unwrap("softmax"))
    assert result.text == (after if after is not None else before)
    assert bool(result.applied) == (after is not None)


def test_unwrapping_a_method_keeps_its_object() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        call = call_of(tree, "softmax")
        assert isinstance(call.func, ast.Attribute)
        editor.replace_with_node(call, call.func.value)

    assert repaired("loss = ce((a + b).softmax(-1), y)\n", repair) == "loss = ce((a + b), y)\n"


def test_edits_inside_what_is_kept_are_kept() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        call = call_of(tree, "softmax")
        editor.replace_with_node(call, call.args[0])
        editor.rename_function(call_of(tree, "net"), "model")

    assert repaired("p = softmax(self.net(x), 1)\n", repair) == "p = self.model(x)\n"


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("a + b", "y = (a + b) * 2\n"),
        ("a, b", "y = (a, b) * 2\n"),
        ("a.b[0]", "y = a.b[0] * 2\n"),
        ("f(\n    1,\n)", "y = f(\n    1,\n) * 2\n"),
    ],
)
def test_replacing(code: str, after: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.replace(nodes(tree, ast.BinOp)[0].left, code)

    assert repaired("y = x * 2\n", repair) == after


@pytest.mark.parametrize("code", ["", "a b", "return", "x = 1", "a)(b", "# nothing"])
def test_what_is_no_expression_is_refused(code: str) -> None:
    result = fixed("y = x\n", lambda editor, tree: editor.replace(nodes(tree, ast.Name)[1], code))
    assert result.text == "y = x\n"
    assert not result.applied


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.m = [a, b]\n", "self.m = nn.ModuleList([a, b])\n"),
        ("self.m = (a, b)\n", "self.m = nn.ModuleList((a, b))\n"),
        ("self.m = a, b\n", "self.m = nn.ModuleList((a, b))\n"),
        ("self.m = (a + b)\n", "self.m = nn.ModuleList(a + b)\n"),
        (
            "self.m = [\n    a,  # one\n    b,\n]\n",
            "self.m = nn.ModuleList([\n    a,  # one\n    b,\n])\n",
        ),
        ("self.m = (  # why\n    a + b)\n", "self.m = nn.ModuleList((  # why\n    a + b))\n"),
    ],
)
def test_wrapping(before: str, after: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.wrap(nodes(tree, ast.Assign)[0].value, "nn.ModuleList")

    assert repaired(before, repair) == after


def test_wrapping_does_not_join_words() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.wrap(nodes(tree, ast.BinOp)[0], "f")

    assert repaired("x = a if b else(c + d)\n", repair) == "x = a if b else(f(c + d))\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model.eval  # here\n", "model.eval()  # here\n"),
        ("if x: model . eval\n", "if x: model . eval()\n"),
        ("(model\n .eval)\n", "(model\n .eval)()\n"),
    ],
)
def test_calling(before: str, after: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.call(nodes(tree, ast.Attribute)[0])

    assert repaired(before, repair) == after


def test_calling_with_arguments() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.call(nodes(tree, ast.Attribute)[0], "set_to_none=True")

    assert repaired("o.zero_grad\n", repair) == "o.zero_grad(set_to_none=True)\n"


def test_renaming_attributes_and_functions() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.rename_attribute(nodes(tree, ast.Attribute)[0], "requires_grad")
        editor.rename_function(call_of(tree, "softmax"), "log_softmax")

    before = "p . require_grad = F . softmax (x)  # one\n"
    assert repaired(before, repair) == "p . requires_grad = F . log_softmax (x)  # one\n"


def test_what_has_no_name_cannot_be_renamed() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.rename_function(nodes(tree, ast.Call)[0], "g")

    assert not fixed("table[0](x)\n", repair).applied


def test_the_source_of_a_node() -> None:
    seen: list[str] = []

    def repair(editor: Editor, tree: ast.Module) -> None:
        seen.append(editor.source(nodes(tree, ast.Call)[0]))
        seen.append(editor.source(nodes(tree, ast.Call)[0].keywords[0]))
        seen.append(editor.source(tree.body[0]))

    fixed("é = ü(ä,\n  ö = 'ß')  # c\n", repair)
    assert seen == ["ü(ä,\n  ö = 'ß')", "ö = 'ß'", "é = ü(ä,\n  ö = 'ß')"]


def test_unusual_statements_around_an_expression() -> None:
    before = source("""
        match softmax(z):
            case {"a": [x, *_]} if softmax(x): pass
        async def f():
        \tasync with softmax(a) as b, c: return softmax(b)
        @softmax(d)
        class E(softmax(e)): pass
    """)

    def repair(editor: Editor, tree: ast.Module) -> None:
        for call in nodes(tree, ast.Call):
            editor.replace_with_node(call, call.args[0])

    expected = before
    for name in "zxabde":
        expected = expected.replace(f"softmax({name})", name)
    assert repaired(before, repair) == expected
