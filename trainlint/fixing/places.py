"""Where each LibCST node stands, and what holds it.

LibCST's own providers take longer over a whole file than its parser does; edits concern a few
functions, so places are worked out for one top-level statement at a time, when first asked for.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

Range = tuple[int, int, int, int]


class Places:
    """Lines count from 1, columns from 0 in characters; the end is exclusive."""

    def __init__(self, module: cst.Module) -> None:
        self._module = module
        self._ranges: dict[cst.CSTNode, Range] = {}
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._first_lines = _first_lines(module)

    def top_level_index(self, line: int) -> int:
        """Which top-level statement, counted from 0, the line belongs to."""
        return max(bisect_right(self._first_lines, line) - 1, 0)

    def load(self, index: int) -> list[cst.CSTNode]:
        """Work out the places of a top-level statement and all it holds; gives these nodes.

        White space that writes nothing may have no place.
        """
        if index >= len(self._module.body):
            return []
        top = self._module.body[index]
        self._parents[top] = self._module
        nodes: list[cst.CSTNode] = [top]
        for node in nodes:
            for child in _children(node):
                self._parents[child] = node
                nodes.append(child)
        alone = self._module.with_changes(header=[], body=[top], footer=[])
        wrapper = MetadataWrapper(alone, unsafe_skip_copy=True)
        ranges = cast("Mapping[cst.CSTNode, CodeRange]", wrapper.resolve(PositionProvider))
        lines_above = self._first_lines[index] - 1
        for node, place in ranges.items():
            self._ranges[node] = (
                place.start.line + lines_above,
                place.start.column,
                place.end.line + lines_above,
                place.end.column,
            )
        return nodes

    def range(self, node: cst.CSTNode) -> Range:
        """Where ``node`` stands, without the parentheses around it."""
        return self._ranges[node]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """What holds ``node``; nothing holds the module."""
        return self._parents.get(node)


@cache
def _field_names(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What ``node.children`` gives, without the copy of the node that LibCST makes for it."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (child for child in value if isinstance(child, cst.CSTNode))


def _first_lines(module: cst.Module) -> list[int]:
    """The line where each top-level statement begins, with the lines above that belong to it."""
    line = 1 + len(module.header)
    lines = []
    for statement in module.body:
        lines.append(line)
        code = module.code_for_node(statement)
        line += code.count("\n") + code.count("\r") - code.count("\r\n")
    return lines
