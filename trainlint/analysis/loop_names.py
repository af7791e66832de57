"""What a loop walks through, and what that is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
    """The names of what the loop goes through, and the code that says so."""
    names = [item.hint for item in iterated(loop) if item.hint]
    if isinstance(loop.node, (ast.For, ast.AsyncFor)):
        names.append(ast.unparse(loop.node.iter))
    return names
