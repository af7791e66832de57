"""Edits of statements: places, comments, blank lines, one-line bodies."""

from __future__ import annotations

import ast

import pytest

from tests.fixing.repairing import RepairOfTree, fixed, nodes, repaired, source, statement_of
from trainlint.fixing.editor import Editor

LOOP = source("""
    for x in loader:  # batches
        y = model(x)

        # how wrong
        # are we
        loss = ce(y)  # loss

        # gradients
        loss.backward(); optimizer.step()  # both
        # the end
    """)


def inserting_before(code: str, statement: str) -> RepairOfTree:
    """Insert ``code`` before the first statement that begins with ``statement``."""
    return lambda editor, tree: editor.insert_before(statement_of(tree, statement), code)


def inserting_after(code: str, statement: str) -> RepairOfTree:
    """Insert ``code`` after the first statement that begins with ``statement``."""
    return lambda editor, tree: editor.insert_after(statement_of(tree, statement), code)


def test_inserting_above_the_comments_of_a_statement() -> None:
    expected = LOOP.replace("    # how wrong", "    new()\n    # how wrong")
    assert repaired(LOOP, inserting_before("new()", "loss =")) == expected


def test_inserting_between_statements_of_one_line() -> None:
    old = "loss.backward(); optimizer.step()  # both"
    new = "loss.backward()\n    new()\n    optimizer.step()  # both"
    assert repaired(LOOP, inserting_before("new()", "optimizer.step")) == LOOP.replace(old, new)
    assert repaired(LOOP, inserting_after("new()", "loss.backward")) == LOOP.replace(old, new)


def test_inserting_last() -> None:
    old = "loss.backward(); optimizer.step()  # both\n"
    new = "loss.backward()\n    optimizer.step()  # both\n    new()\n"
    assert repaired(LOOP, inserting_after("new()", "optimizer.step")) == LOOP.replace(old, new)


def test_inserting_at_the_top_of_a_body() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.insert_first(tree.body[0], "new()")

    assert repaired(LOOP, repair) == LOOP.replace("# batches\n", "# batches\n    new()\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n  'doc'\n\n  x\n", "def f():\n  'doc'\n  new()\n\n  x\n"),
        ("def f():\n  'doc'; x\n", "def f():\n  'doc'\n  new()\n  x\n"),
        ("def f(): return 1  # one\n", "def f():\n    new()\n    return 1  # one\n"),
        ("def f():\n\t# first\n\tx\n", "def f():\n\tnew()\n\t# first\n\tx\n"),
        ("class A: x = 1; y = 2\n", "class A:\n    new()\n    x = 1\n    y = 2\n"),
        ("with a as b: c\n", "with a as b:\n    new()\n    c\n"),
        ("while a:\r\n   b\r\n", "while a:\r\n   new()\r\n   b\r\n"),
        ("async def f():\n  'a' 'b'\n", "async def f():\n  'a' 'b'\n  new()\n"),
        ("try: a\nexcept E: b\n", "try:\n    new()\n    a\nexcept E: b\n"),
        ("x = 1\n", "x = 1\n"),
    ],
)
def test_inserting_at_the_top(before: str, after: str) -> None:
    result = fixed(before, lambda editor, tree: editor.insert_first(tree.body[0], "new()"))
    assert result.text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("#!/bin/python\n'doc'\nx\n", "#!/bin/python\n'doc'\nnew()\nx\n"),
        ("# about\n\nx\n", "# about\n\nnew()\nx\n"),
        ("x", "new()\nx"),
    ],
)
def test_inserting_at_the_top_of_the_file(before: str, after: str) -> None:
    assert repaired(before, lambda editor, tree: editor.insert_first(tree, "new()")) == after


def test_inserted_blocks_follow_the_file() -> None:
    code = "if a:\n    for b in c:\n        d = '''\n  e'''"
    before = "def f():\r\n\tx\r\n\ty"
    after = "def f():\r\n\tx\r\n\tif a:\r\n\t\tfor b in c:\r\n\t\t\td = '''\n  e'''\r\n\ty"
    assert repaired(before, inserting_after(code, "x")) == after


def test_an_elif_is_no_member_of_a_block() -> None:
    text = "if a: b\nelif c: d\n"
    assert not fixed(text, lambda e, tree: e.insert_before(nodes(tree, ast.If)[1], "x")).applied
    assert not fixed(text, lambda e, tree: e.remove(nodes(tree, ast.If)[1])).applied


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a: b  # why\nelse: c\n", "if a: pass  # why\nelse: c\n"),
        ("if a:\n  b  # why\n", "if a:\n  pass  # why\n"),
        ("if a:\n  # above\n  b\n  c\n", "if a:\n  # above\n  c\n"),
        ("if a:\n  c\n  # above\n  b\n  # below\nd\n", "if a:\n  c\n  # above\n  # below\nd\n"),
        ("a\n\nb\n\nc\n", "a\n\nc\n"),
        ("a\n\nb\nc\n", "a\n\nc\n"),
        ("a; b; c  # all\n", "a\nc  # all\n"),
        ("b\n", "\n"),
        ("match x:\n  case 1: b\n", "match x:\n  case 1: pass\n"),
        ("if a:\n  pass\nelse:\n  for b in c:\n    d\n", "if a:\n  pass\nelse:\n  pass\n"),
    ],
)
def test_removing(before: str, after: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        for kind in (ast.For, ast.Expr):
            for statement in nodes(tree, kind):
                if isinstance(statement, ast.For) or ast.unparse(statement) == "b":
                    editor.remove(statement)
                    return

    assert repaired(before, repair) == after


@pytest.mark.parametrize(
    ("before", "code", "after"),
    [
        ("if a: b  # why\n", "new()", "if a: new()  # why\n"),
        ("a; b; c\n", "new()", "a; new(); c\n"),
        ("if a: b  # why\n", "x\ny", "if a:\n    x\n    y  # why\n"),
        ("# above\nb  # why\nc\n", "x\ny", "# above\nx\ny  # why\nc\n"),
        ("if 1:\n\tb  # why\n", "# new\nif x:\n  y", "if 1:\n\t# new\n\tif x:\n\t\ty\n"),
    ],
)
def test_replacing(before: str, code: str, after: str) -> None:
    result = fixed(before, lambda e, tree: e.replace_statement(statement_of(tree, "b"), code))
    assert result.text == after


def swapping(first: str, second: str) -> RepairOfTree:
    """Swap the first statements that begin with these texts."""
    return lambda editor, tree: editor.swap_statements(
        statement_of(tree, first), statement_of(tree, second)
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# file\n\n# one\na\n\n# two\nb\n", "# file\n\n# two\nb\n\n# one\na\n"),
        ("x\n# one\na  # A\n\n# two\nb  # B\n", "x\n# two\nb  # B\n\n# one\na  # A\n"),
        ("a; c; b  # end\n", "b  # end\nc\na\n"),
        ("if x: a\nelse: b\n", "if x:\n    b\nelse:\n    a\n"),
        ("a\nif x:\n    if y:\n        b\n", "b\nif x:\n    if y:\n        a\n"),
    ],
)
def test_swapping(before: str, after: str) -> None:
    assert fixed(before, swapping("a", "b")).text == after


def test_a_statement_cannot_be_swapped_with_what_it_holds() -> None:
    text = "for a in c:\n    b\n"
    assert not fixed(text, swapping("for", "b")).applied


def test_moving() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.move_before(statement_of(tree, "loss.backward"), statement_of(tree, "loss ="))

    expected = source("""
        for x in loader:  # batches
            y = model(x)

            # gradients
            loss.backward()
            # how wrong
            # are we
            loss = ce(y)  # loss

            optimizer.step()  # both
            # the end
        """)
    assert repaired(LOOP, repair) == expected


def test_moving_out_of_a_block() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.move_after(statement_of(tree, "scheduler.step"), statement_of(tree, "for"))

    before = "if 1:\n  for x in y:\n    scheduler.step()  # s\n  z\n"
    after = "if 1:\n  for x in y:\n    pass\n  scheduler.step()  # s\n  z\n"
    assert repaired(before, repair) == after


def test_edits_inside_a_moved_statement_are_kept() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        first, second = tree.body[0].body  # type: ignore[attr-defined]
        editor.swap_statements(first, second)
        editor.rename_function(nodes(tree, ast.Call)[0], "new")

    before = "if 1:\n  old()\n  if 2: x\n"
    assert repaired(before, repair) == "if 1:\n  if 2: x\n  new()\n"


def test_wrapping() -> None:
    before = source('''
        def evaluate(model):
            model.eval()

            # all batches
            for x in loader:
                # each
                y = model(x,
                          1)  # one
                text = """
            stays
                """
          # oddly placed
            print(y)  # done

            return y
    ''')

    def repair(editor: Editor, tree: ast.Module) -> None:
        neighbours = [statement_of(tree, "for"), statement_of(tree, "print")]
        editor.wrap_statements(neighbours, "with torch.no_grad():")

    expected = source('''
        def evaluate(model):
            model.eval()

            with torch.no_grad():
                # all batches
                for x in loader:
                    # each
                    y = model(x,
                              1)  # one
                    text = """
            stays
                """
          # oddly placed
                print(y)  # done

            return y
    ''')
    assert repaired(before, repair) == expected


def test_wrapping_part_of_a_line() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.wrap_statements([statement_of(tree, "b")], "with c:")

    assert repaired("if 1: a; b; d\n", repair) == "if 1:\n    a\n    with c:\n        b\n    d\n"


def test_only_neighbours_can_be_wrapped() -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.wrap_statements([tree.body[0], tree.body[2]], "with c:")

    assert not fixed("a\nb\nd\n", repair).applied


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# why\n@a\n# how\ndef f(): pass\n",
            "# why\n@a\n@torch.no_grad()\n# how\ndef f(): pass\n",
        ),
        (
            "class A:\n  async def f(x):\n    y\n",
            "@torch.no_grad()\nclass A:\n  async def f(x):\n    y\n",
        ),
        ("# why\n\ndef f():\n  pass\n", "# why\n\n@torch.no_grad()\ndef f():\n  pass\n"),
    ],
)
def test_decorating(before: str, after: str) -> None:
    def repair(editor: Editor, tree: ast.Module) -> None:
        editor.add_decorator(tree.body[0], "torch.no_grad()")

    assert repaired(before, repair) == after
