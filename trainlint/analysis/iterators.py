"""Iterators over parameters that are kept in a variable: they can be walked through once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.knowledge.training import is_optimizer_class, looks_like_optimizer
from trainlint.analysis.receivers import last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_LAZY = frozenset(
    {"builtins.filter", "builtins.map", "itertools.chain", "itertools.chain.from_iterable"}
)
_METHODS = frozenset({"parameters", "named_parameters"})
_WALKS = frozenset(
    {
        "list", "tuple", "set", "sorted", "sum", "min", "max", "any", "all", "dict", "enumerate",
        "zip", "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "parameters_to_vector",
    }
)  # fmt: skip
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class SecondWalk:
    """``again`` walks through the iterator ``made`` after ``first`` has (itself, in a loop)."""

    name: str
    made: ast.expr
    first: ast.expr
    again: ast.expr


def second_walks(file: FileModel) -> Iterator[SecondWalk]:
    """Places where an iterator over parameters is walked through though it is used up."""
    for assignment in file.nodes(ast.Assign):
        if len(assignment.targets) != 1 or not is_lazy(file, assignment.value):
            continue
        target = assignment.targets[0]
        walks = [node for node in _reads(file, target) if _walks_through(file, node)]
        found = _used_up(file, assignment, walks)
        if found is not None:
            yield SecondWalk(last_name(target), assignment.value, *found)


def is_lazy(file: FileModel, value: ast.expr) -> bool:
    """``model.parameters()``, and ``filter``, ``chain`` or a generator over such."""
    if isinstance(value, ast.GeneratorExp):
        return (
            _METHODS & {last_name(node) for node in ast.walk(value) if isinstance(node, ast.Call)}
            != set()
        )
    if not isinstance(value, ast.Call):
        return False
    if file.qualified(value.func) in _LAZY:
        text = ast.unparse(value)
        return "requires_grad" in text or "parameters()" in text
    is_method = isinstance(value.func, ast.Attribute) and value.func.attr in _METHODS
    return is_method and not any(node.name in _METHODS for node in file.index.functions())


def _reads(file: FileModel, target: ast.expr) -> list[ast.expr]:
    """All reads of a variable, or attribute of ``self``, that is assigned only once."""
    if isinstance(target, ast.Name):
        bound = file.index.bindings(target.id, file.index.scope(target))
        if bound != [target]:
            return []
        return [
            node
            for node in file.nodes(ast.Name)
            if node.id == target.id
            and isinstance(node.ctx, ast.Load)
            and file.index.bindings(node.id, file.index.scope(node)) is bound
        ]
    owner = file.index.enclosing_class(target)
    if not isinstance(target, ast.Attribute) or owner is None:
        return []
    if len(file.attribute_assignments(owner).get(target.attr, [])) != 1:
        return []
    return [
        node
        for node in file.nodes(ast.Attribute)
        if node.attr == target.attr
        and isinstance(node.ctx, ast.Load)
        and ast.dump(node.value) == ast.dump(target.value)
        and file.index.enclosing_class(node) is owner
    ]


def _walks_through(file: FileModel, node: ast.expr) -> bool:
    parent = file.index.parents.get(node)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Dict):
        return any(
            isinstance(key, ast.Constant) and key.value == "params" and value is node
            for key, value in zip(parent.keys, parent.values, strict=True)
        )
    if isinstance(parent, ast.keyword):
        parent = file.index.parents.get(parent)
    if not isinstance(parent, ast.Call) or parent.func is node:
        return False
    return last_name(parent.func) in _WALKS or _makes_optimizer(file, parent)


def _makes_optimizer(file: FileModel, call: ast.Call) -> bool:
    dotted = file.qualified(call.func)
    if dotted is not None and is_optimizer_class(dotted):
        return True
    return looks_like_optimizer(last_name(call.func)) and not isinstance(call.func, ast.Subscript)


def _used_up(
    file: FileModel, assignment: ast.Assign, walks: list[ast.expr]
) -> tuple[ast.expr, ast.expr] | None:
    walks.sort(key=lambda node: (node.lineno, node.col_offset))
    for position, first in enumerate(walks):
        for again in walks[position + 1 :]:
            if not _excludes(file, first, again):
                return first, again
    is_local = isinstance(assignment.targets[0], ast.Name)
    for walk in walks:
        if is_local and _is_repeated(file, assignment, walk):
            return walk, walk
    return None


def _ancestors(file: FileModel, node: ast.AST) -> list[ast.AST]:
    found = [node]
    while (parent := file.index.parents.get(found[-1])) is not None:
        found.append(parent)
    return found


def _excludes(file: FileModel, first: ast.expr, second: ast.expr) -> bool:
    """Whether only one of two places is reached, or both are alternatives by different tests."""
    one, other = _ancestors(file, first), _ancestors(file, second)
    shared = next(item for item in one if item in other)
    inside, other_inside = one[: one.index(shared)], other[: other.index(shared)]
    if isinstance(shared, (ast.If, ast.IfExp, ast.Try, ast.Match)):
        return True
    if any(_ends(block) for item in inside for block in _blocks(item) if _holds(block, inside)):
        return True
    conditional = (ast.If, ast.IfExp, ast.Match)
    both = [any(isinstance(item, conditional) for item in way) for way in (inside, other_inside)]
    if all(both):
        return True
    return any(isinstance(item, ast.Return) for item in inside)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    fields = (getattr(node, name, None) for name in ("body", "orelse", "handlers", "finalbody"))
    is_branch = isinstance(node, (ast.If, ast.Try, ast.ExceptHandler))
    return [field for field in fields if is_branch and isinstance(field, list)]


def _holds(block: list[ast.stmt], nodes: list[ast.AST]) -> bool:
    return any(item in block for item in nodes)


def _ends(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVES)


def _is_repeated(file: FileModel, assignment: ast.Assign, walk: ast.expr) -> bool:
    """Whether a loop repeats the walk that does not repeat the assignment."""
    around = _ancestors(file, walk)
    for position, item in enumerate(around):
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        in_body = isinstance(item, _LOOPS) and around[position - 1] in item.body
        if in_body and assignment not in ast.walk(item):
            inside = around[:position]
            blocks = [block for part in inside for block in _blocks(part)]
            assert isinstance(item, _LOOPS)
            return not any(_ends(block) for block in [*blocks, item.body])
    return False
