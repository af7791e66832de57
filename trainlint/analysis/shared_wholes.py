"""Parts of one dataset, whose transforms cannot differ: the whole has only one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import block_of
from trainlint.analysis.knowledge.training import sounds_like_evaluation, speaks_of_training

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_SPLIT = "torch.utils.data.random_split"


@dataclass(frozen=True)
class SharedTransform:
    """``second`` replaces the transform that ``first`` gave to the same whole of two parts."""

    first: ast.Assign
    second: ast.Assign
    parts: tuple[str, str]


def shared_transforms(file: FileModel) -> Iterator[SharedTransform]:
    """``train_set.dataset.transform = a`` and then ``val_set.dataset.transform = b``.

    Nothing is said where something between the two may work with the first transform: a loop, or
    a new whole for one of the parts.
    """
    for call in file.calls(_SPLIT):
        statement = file.index.statement(call)
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Tuple):
            continue
        names = [item.id for item in statement.targets[0].elts if isinstance(item, ast.Name)]
        block = block_of(file, statement)
        later = block[block.index(statement) + 1 :]
        yield from _replaced(names, later)


def _replaced(names: list[str], later: list[ast.stmt]) -> Iterator[SharedTransform]:
    given: dict[str, tuple[str, ast.Assign]] = {}
    for statement in later:
        if isinstance(statement, (ast.For, ast.While)) or _renews(names, statement):
            return
        part, attribute = _part(names, statement)
        if not isinstance(statement, ast.Assign) or not part:
            continue
        before, first = given.get(attribute, ("", statement))
        is_of_both = speaks_of_training(before) and sounds_like_evaluation(part)
        is_of_both |= sounds_like_evaluation(before) and speaks_of_training(part)
        if is_of_both and ast.unparse(first.value) != ast.unparse(statement.value):
            yield SharedTransform(first, statement, (before, part))
        given[attribute] = (part, statement)


def _part(names: list[str], statement: ast.stmt) -> tuple[str, str]:
    """``train_set`` and ``transform`` of ``train_set.dataset.transform = augment``."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        for name in names:
            start, _, attribute = ast.unparse(statement.targets[0]).rpartition(".")
            if start == f"{name}.dataset" and "transform" in attribute:
                return name, attribute
    return "", ""


def _renews(names: list[str], statement: ast.stmt) -> bool:
    """Whether a part, or its whole, is another one from here on."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    shown = {ast.unparse(target) for target in targets}
    return any(shown & {name, f"{name}.dataset"} for name in names)
