"""Transforms of samples: which of them draw at random, and which datasets apply them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge.transforms import is_random, only_combines
from trainlint.analysis.receivers import last_name
from trainlint.analysis.values import Choice, Constant, Group, Instance, Object, Unknown, Value

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_MAX_DEPTH = 6
_PARTS = ("torch.utils.data.random_split", "torch.utils.data.Subset")


def random_transforms(dataset: Value) -> list[Object]:
    """The random transforms that a dataset certainly applies to its samples.

    A part of a dataset applies those of the whole. A dataset of the project applies what it was
    given, or what its constructor makes.
    """
    return list(_certain(whole(dataset)))


def possible_random_transforms(dataset: Value) -> list[Object]:
    """The random transforms that a dataset may apply, depending on what the model cannot see."""
    return list(_possible(whole(dataset)))


def whole(dataset: Value) -> Value:
    """The dataset that a part was taken from by ``random_split`` or ``Subset``, else itself."""
    current = dataset
    for _ in range(_MAX_DEPTH):
        split = splitting(current)
        if split is None or not split.arguments:
            break
        current = split.arguments[0]
    return current


def splitting(dataset: Value) -> Object | None:
    """The call of ``random_split`` or ``Subset`` that a part comes from."""
    found = dataset.parent if isinstance(dataset, Unknown) else dataset
    is_part = isinstance(found, Object) and found.dotted in _PARTS
    return found if is_part and isinstance(found, Object) else None


def _held(dataset: Value) -> Iterator[Value]:
    """What a dataset may apply: what it was given, or keeps in an attribute of its own."""
    if isinstance(dataset, Object):
        yield from dataset.arguments
        yield from dataset.keywords.values()
    elif isinstance(dataset, Instance):
        off = [held for name, held in dataset.members.items() if _is_switched_off(dataset, name)]
        yield from (item for item in dataset.arguments if item not in off)
        members = (item for item in dataset.members.values() if item not in off)
        yield from (item for item in members if item not in dataset.arguments)


def _is_switched_off(dataset: Instance, name: str) -> bool:
    """Whether methods use an attribute only below a flag of the dataset that is off, or never."""
    held = dataset.members[name]
    if isinstance(held, Constant):
        return False
    uses = [
        (owner.file, node)
        for owner in dataset.definition.ancestors()
        for method in owner.own_methods.values()
        if method.name != "__init__"
        for node in owner.file.index.nodes_in(method.node, ast.Attribute)
        if node.attr == name and _is_self(node.value)
    ]
    if not uses and dataset.definition.method("__getitem__") is None:
        return False
    return all(_is_below_an_off_switch(dataset, *use) for use in uses)


def _is_below_an_off_switch(dataset: Instance, file: FileModel, use: ast.AST) -> bool:
    node, parent = use, file.index.parents.get(use)
    while parent is not None and not isinstance(parent, ast.FunctionDef):
        if isinstance(parent, ast.If) and node is not parent.test:
            is_on = _flag(dataset, parent.test)
            if is_on is not None and is_on is (node in parent.orelse):
                return True
        node, parent = parent, file.index.parents.get(parent)
    return False


def _flag(dataset: Instance, test: ast.expr) -> bool | None:
    """What ``self.train``, ``not self.train`` and ``self.mode == "train"`` are; None: unknown."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _flag(dataset, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return False if any(_flag(dataset, item) is False for item in test.values) else None
    if isinstance(test, ast.Attribute) and _is_self(test.value):
        held = dataset.members.get(test.attr)
        return bool(held.value) if isinstance(held, Constant) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left, right = test.left, test.comparators[0]
        is_own = isinstance(left, ast.Attribute) and _is_self(left.value)
        held = dataset.members.get(last_name(left)) if is_own else None
        if isinstance(held, Constant) and isinstance(right, ast.Constant):
            return held.value == right.value
    return None


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _certain(dataset: Value, depth: int = 0) -> Iterator[Object]:
    if isinstance(dataset, Choice):
        found = [list(_certain(option, depth)) for option in dataset.options]
        if all(found):
            yield from (item for items in found for item in items)
        return
    for item in _held(dataset):
        yield from _in_transform(item, depth)


def _in_transform(value: Value, depth: int) -> Iterator[Object]:
    if depth > _MAX_DEPTH or isinstance(value, Constant):
        return
    if isinstance(value, Choice):
        options = [item for item in value.options if not isinstance(item, Constant)]
        found = [list(_in_transform(option, depth + 1)) for option in options]
        if found and all(found) and len(options) == len(value.options):
            yield from (item for items in found for item in items)
    elif isinstance(value, Group) and value.keys is None:
        for element in value.elements:
            yield from _in_transform(element, depth + 1)
    elif isinstance(value, Object):
        if is_random(value.dotted):
            yield value
        elif only_combines(value.dotted):
            for argument in [*value.arguments, *value.keywords.values()]:
                yield from _in_transform(argument, depth + 1)


def _possible(value: Value) -> Iterator[Object]:
    pending, depth = list(_held(value)), 0
    while pending and depth < 200:
        depth += 1
        item = pending.pop(0)
        if isinstance(item, Choice):
            pending.extend(item.options)
        elif isinstance(item, Group):
            pending.extend(item.elements)
        elif isinstance(item, Object) and is_random(item.dotted):
            yield item
        elif isinstance(item, Object) and only_combines(item.dotted):
            pending.extend([*item.arguments, *item.keywords.values()])
