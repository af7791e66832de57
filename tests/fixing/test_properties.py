"""Whatever the layout: statements end up where they should, everything else stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixing.programs import programs
from tests.fixing.repairing import RepairOfTree, repaired

Place = tuple[list[ast.stmt], int]

_LINE_END = re.compile(r"\r\n|\n")


def places(tree: ast.AST) -> Iterator[Place]:
    """Every statement of a tree, as the list that holds it and its index there."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            members = getattr(node, field, [])
            if isinstance(members, list):
                yield from ((members, index) for index in range(len(members)))


def is_subsequence(lines: Sequence[str], of: Sequence[str]) -> bool:
    """Whether ``lines`` stand in ``of``, in this order, perhaps with others between them."""
    rest = iter(of)
    return all(line in rest for line in lines)


def untouched(text: str, *statements: ast.stmt) -> list[str]:
    """The lines of a text without those of some statements and the comments above them."""
    lines = _LINE_END.split(text)
    touched: set[int] = set()
    for statement in statements:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        touched.update(range(first, (statement.end_lineno or 0) + 1))
        while first > 1 and lines[first - 2].strip().startswith("#"):
            first -= 1
            touched.add(first)
    return [line for number, line in enumerate(lines, 1) if number not in touched]


def check(text: str, repair: RepairOfTree, wanted: ast.Module, *touched: ast.stmt) -> str:
    """The repaired text, which has the wanted tree, all comments, and the untouched lines."""
    after = repaired(text, repair)
    assert ast.dump(ast.parse(after)) == ast.dump(wanted)
    kept = [line for line in untouched(text, *touched) if line.strip()]
    assert is_subsequence(kept, _LINE_END.split(after))
    assert white_lines(after) <= white_lines(text)
    if "\n" in after:
        assert ("\r\n" in text) == ("\r\n" in after)
    return after


def white_lines(text: str) -> int:
    """How many lines hold nothing but white space, and some of it."""
    return sum(line.isspace() for line in _LINE_END.split(text))


def comments(text: str) -> list[str]:
    """The comments of a program; each is there once."""
    return sorted(re.findall(r"# comment \d+;", text))


def new_statements() -> list[ast.stmt]:
    """What the tests insert."""
    return ast.parse(NEW).body


NEW = "if new:\n        new('''\n''')  # new"


@settings(max_examples=30, deadline=None)
@given(programs(), st.data())
def test_inserting(text: str, data: st.DataObject) -> None:
    wanted = ast.parse(text)
    number = data.draw(st.integers(0, len(list(places(wanted))) - 1))
    after = data.draw(st.booleans())
    members, index = list(places(wanted))[number]
    target = members[index]
    members[index + after : index + after] = new_statements()

    def repair(editor, tree):  # type: ignore[no-untyped-def]
        members, index = list(places(tree))[number]
        (editor.insert_after if after else editor.insert_before)(members[index], NEW)

    result = check(text, repair, wanted, target)
    assert comments(result) == comments(text)


@settings(max_examples=30, deadline=None)
@given(programs(), st.data())
def test_removing_and_replacing(text: str, data: st.DataObject) -> None:
    wanted = ast.parse(text)
    number = data.draw(st.integers(0, len(list(places(wanted))) - 1))
    replace = data.draw(st.booleans())
    members, index = list(places(wanted))[number]
    target = members[index]
    members[index : index + 1] = new_statements() if replace else []
    if not members and members is not wanted.body:
        members.append(ast.Pass())

    def repair(editor, tree):  # type: ignore[no-untyped-def]
        members, index = list(places(tree))[number]
        if replace:
            editor.replace_statement(members[index], NEW)
        else:
            editor.remove(members[index])

    check(text, repair, wanted, target)


@settings(max_examples=30, deadline=None)
@given(programs(), st.data())
def test_swapping_and_moving(text: str, data: st.DataObject) -> None:
    wanted = ast.parse(text)
    everywhere = list(places(wanted))
    numbers = st.integers(0, len(everywhere) - 1)
    one, two = data.draw(numbers), data.draw(numbers)
    (members, index), (others, other_index) = everywhere[one], everywhere[two]
    first, second = members[index], others[other_index]
    if second in ast.walk(first) or first in ast.walk(second):
        return
    swap = data.draw(st.booleans())
    stays = not swap and members is others and index + 1 == other_index
    if stays:
        return
    if swap:
        members[index], others[other_index] = second, first
    else:
        members.remove(first)
        others.insert(others.index(second), first)
        if not members:
            members.append(ast.Pass())

    def repair(editor, tree):  # type: ignore[no-untyped-def]
        (members, index), (others, other_index) = list(places(tree))[one], list(places(tree))[two]
        edit = editor.swap_statements if swap else editor.move_before
        edit(members[index], others[other_index])

    result = check(text, repair, wanted, first, second)
    assert comments(result) == comments(text)


@settings(max_examples=30, deadline=None)
@given(programs(), st.data())
def test_wrapping(text: str, data: st.DataObject) -> None:
    wanted = ast.parse(text)
    number = data.draw(st.integers(0, len(list(places(wanted))) - 1))
    members, index = list(places(wanted))[number]
    end = data.draw(st.integers(index + 1, len(members)))
    held = members[index:end]
    block = ast.parse("with torch.no_grad(): pass").body[0]
    assert isinstance(block, ast.With)
    block.body = held
    members[index:end] = [block]

    def repair(editor, tree):  # type: ignore[no-untyped-def]
        members, index = list(places(tree))[number]
        editor.wrap_statements(members[index:end], "with torch.no_grad():")

    from_first_to_last = ast.Pass(lineno=held[0].lineno, end_lineno=held[-1].end_lineno)
    result = check(text, repair, wanted, held[0], from_first_to_last)
    assert comments(result) == comments(text)


@settings(max_examples=30, deadline=None)
@given(programs(), st.data())
def test_renaming_every_call(text: str, data: st.DataObject) -> None:
    names = re.findall(r"\bs\d+\b", text)
    chosen = data.draw(st.sets(st.sampled_from(names)))

    def repair(editor, tree):  # type: ignore[no-untyped-def]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in chosen:
                editor.rename_function(node, "renamed")
                editor.add_argument(node, "k=1")

    if chosen:
        expected = re.sub(
            r"\b(s\d+)\(\)", lambda m: "renamed(k=1)" if m[1] in chosen else m[0], text
        )
        assert repaired(text, repair) == expected
