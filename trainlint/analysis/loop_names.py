"""What a loop walks through, and what that is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from trainlint.analysis.knowledge.training import LOADER_CLASSES
from trainlint.analysis.trace import Loop
from trainlint.analysis.values import Object, Value, elements


def iterated(loop: Loop) -> Iterator[Value]:
    """What the loop goes through, and what ``enumerate`` and ``zip`` around it do."""
    for item in elements(loop.iterated):
        yield item
        if isinstance(item, Object) and item.dotted in ("builtins.enumerate", "builtins.zip"):
            for argument in item.arguments:
                yield from elements(argument)


def names_of_iterated(loop: Loop) -> list[str]:
    """The names of what the loop goes through and of its data, and the code that says so."""
    walked = list(iterated(loop))
    data = [item.argument(0, "dataset") for item in walked if _is_loader(item)]
    names = [item.hint for item in (*walked, *data) if item is not None and item.hint]
    if isinstance(loop.node, (ast.For, ast.AsyncFor)):
        names.append(ast.unparse(loop.node.iter))
    return names


def _is_loader(value: Value) -> TypeGuard[Object]:
    return isinstance(value, Object) and value.dotted in LOADER_CLASSES
