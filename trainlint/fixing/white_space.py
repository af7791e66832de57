"""Blank lines and comments above statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

# LibCST loses a form feed that stands alone on its line; it travels as this comment.
FORM_FEED_COMMENT = "#trainlint:form-feed#"

Node = TypeVar("Node", bound=cst.CSTNode)


def is_blank(line: cst.EmptyLine) -> bool:
    """Whether the line holds no comment."""
    return line.comment is None or line.comment.value == FORM_FEED_COMMENT


def split_at_last_blank(
    lines: Sequence[cst.EmptyLine],
) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """The lines above a statement: those of the place, and the comments directly above it."""
    index = len(lines)
    while index > 0 and not is_blank(lines[index - 1]):
        index -= 1
    return list(lines[:index]), list(lines[index:])


def with_empty_blank_lines(node: Node) -> Node:
    """``node``, whose blank lines get no indentation in whatever block it is put."""
    result = node.visit(_EmptyBlankLines())
    assert isinstance(result, type(node))
    return result


class _EmptyBlankLines(cst.CSTTransformer):
    def leave_EmptyLine(  # noqa: N802 - named by LibCST
        self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
    ) -> cst.EmptyLine:
        if is_blank(updated_node) and not updated_node.whitespace.value:
            return updated_node.with_changes(indent=False)
        return updated_node
