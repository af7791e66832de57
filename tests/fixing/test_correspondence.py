"""Every ``ast`` node of real code has its own LibCST node."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trainlint.fixing.correspondence import EXPRESSIONS
from trainlint.fixing.document import Document
from trainlint.fixing.errors import CannotFix

if TYPE_CHECKING:
    import libcst as cst

STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])

ODD = """\
@a . b
async def f(x, /, y=(1, 2), *z: int, **k) -> (yield): return (yield)
if (a): (b) ; c = (d), e
elif ((b)): pass
else :
\twith (open(x)) as y, z: (await g(i for i in (h)))
é = "ü" 'ö' f"{ñ}"; ß = sum((n for n in m), ) if not -1 ** 2 < 3 is 4 else lambda *a: (*a, )
for x, in (y): [*a, {**b}, {c}, {d: e for f in g if h}]
(x.y)[1:2, ...] = (z := 3)
assert (a, b), c
del (a), b[0]
(a)(b)(c)
"""


def editable(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    """All nodes but those inside f-strings, and bare tuples in subscripts, which LibCST lacks."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(inner for inner in ast.walk(node) if inner is not node)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            skipped.add(node.slice)
        if node not in skipped and (isinstance(node, ast.stmt) or type(node) in EXPRESSIONS):
            assert isinstance(node, (ast.expr, ast.stmt))
            yield node


def check_every_node(text: str) -> None:
    """Find the LibCST node of every node of ``text``."""
    document = Document(text)
    found: set[cst.CSTNode] = set()
    for node in editable(document.tree):
        if isinstance(node, ast.stmt):
            partner: cst.CSTNode = document.statement(node)
        else:
            partner = document.expression(node)
        assert partner not in found, ast.dump(node)
        found.add(partner)


@pytest.mark.parametrize("name", ["bisect.py", "contextlib.py", "sched.py", "queue.py", "this.py"])
def test_standard_library(name: str) -> None:
    check_every_node((STANDARD_LIBRARY / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_odd_layout(line_end: str) -> None:
    check_every_node(ODD.replace("\n", line_end))


def test_nodes_of_another_text_are_not_found() -> None:
    document = Document("x = f(a)\n")
    for node in ast.walk(ast.parse("\n\nx = f(b)\n")):
        if isinstance(node, ast.expr):
            with pytest.raises(CannotFix):
                document.expression(node)
