"""Makes the changes of several plans in one walk over the tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import cast

import libcst as cst

from trainlint.fixing.arguments import ArgumentList
from trainlint.fixing.body import Body
from trainlint.fixing.document import Block, Document
from trainlint.fixing.parsing import render
from trainlint.fixing.plan import (
    ArgumentsChange,
    BodyChange,
    Change,
    NodeChange,
    Plan,
    TextChange,
)


def carry_out(document: Document, plans: Iterable[Plan]) -> str:
    """The text with the changes of ``plans`` made; all of them edit the tree, or all the text.

    Raises:
        CannotFix: changes of one plan exclude each other.
    """
    changes = [change for plan in plans for change in plan.changes]
    text_changes = [change for change in changes if isinstance(change, TextChange)]
    if text_changes:
        return _replaced(document.text, text_changes)
    return render(document.module.visit(_Rebuilder(document, changes)))


def _replaced(text: str, changes: Iterable[TextChange]) -> str:
    for change in sorted(changes, key=lambda change: change.span, reverse=True):
        start, end = change.span
        text = text[:start] + change.code + text[end:]
    return text


class _Rebuilder(cst.CSTTransformer):
    """Walks only down to what changes; inner changes are made before outer ones."""

    def __init__(self, document: Document, changes: Iterable[Change]) -> None:
        super().__init__()
        self._nodes: defaultdict[cst.CSTNode, list[NodeChange]] = defaultdict(list)
        self._arguments: defaultdict[cst.CSTNode, list[ArgumentsChange]] = defaultdict(list)
        self._bodies: defaultdict[cst.CSTNode, list[BodyChange]] = defaultdict(list)
        self._on_the_way: set[cst.CSTNode] = set()
        for change in changes:
            if isinstance(change, NodeChange):
                self._nodes[change.target].append(change)
            elif isinstance(change, ArgumentsChange):
                self._arguments[change.target].append(change)
            elif isinstance(change, BodyChange):
                self._bodies[change.target].append(change)
            self._mark(document, change)

    def _mark(self, document: Document, change: Change) -> None:
        node = None if isinstance(change, TextChange) else change.target
        while node is not None and node not in self._on_the_way:
            self._on_the_way.add(node)
            node = document.parent(node)

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self._on_the_way

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        if original_node in self._arguments:
            updated_node = self._with_arguments(original_node, cast("cst.Call", updated_node))
        if original_node in self._bodies:
            updated_node = self._with_body(original_node, updated_node)
        for change in self._nodes.get(original_node, ()):
            updated_node = change.edit(updated_node, self._rebuilt)
        return updated_node

    def _with_arguments(self, original: cst.CSTNode, updated: cst.Call) -> cst.Call:
        arguments = ArgumentList(updated)
        for change in self._arguments[original]:
            change.edit(arguments)
        return arguments.call()

    def _with_body(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:
        changes = self._bodies[original]
        named = {statement for change in changes for statement in change.statements}
        body = Body(changes[0].target, cast("Block", updated), named)
        for change in changes:
            change.edit(body, self._rebuilt)
        return body.block()

    def _rebuilt(self, original: cst.CSTNode) -> cst.CSTNode:
        result = original.visit(self)
        assert isinstance(result, cst.CSTNode)
        return result
