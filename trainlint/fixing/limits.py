"""Which files can be edited: what LibCST cannot hold gets no repairs, so that none is promised.

Measured with LibCST 1.9: a form feed directly before code, and lines that end in a bare carriage
return, do not come back as they were; what nests deeper than a few hundred levels hurts it.
"""

from __future__ import annotations

import ast
import re

LONGEST_TEXT = 1_000_000
DEEPEST_TREE = 500
_NOT_GIVEN_BACK = re.compile(r"\r(?!\n)|^[ \t\f]*\f[ \t\f]*(?![ \t\f\r\n#]|\Z)", re.MULTILINE)


def can_edit(text: str, tree: ast.Module) -> bool:
    """Whether repairs of a file with this text and tree can be carried out."""
    return reason_against(text) is None and not nests_too_deeply(tree)


def reason_against(text: str) -> str | None:
    """Why a text cannot be edited, as far as the characters alone tell."""
    if len(text) > LONGEST_TEXT:
        return f"longer than {LONGEST_TEXT} characters"
    if _NOT_GIVEN_BACK.search(text):
        return "form feeds before code, or lines that end in a bare carriage return"
    return None


def nests_too_deeply(tree: ast.AST) -> bool:
    """Whether LibCST's tree gets deeper: it nests ``a and b and c``, which ``ast`` keeps flat."""
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST_TREE):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if any(isinstance(node, ast.BoolOp) and len(node.values) > DEEPEST_TREE for node in level):
            return True
        if not level:
            return False
    return True
