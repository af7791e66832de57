"""Reads source with both parsers, and refuses what would hurt them.

Measured with LibCST 1.9: 5,000 parentheses or 20,000 operands of ``and`` overflow the 8 MB stack
of the main thread (the process dies), its visitors reach Python's recursion limit at about 300
levels, and chains (``a + a + ...``, ``a.b.b ...``) take quadratic time, 1.5 s for 950 links. So
what nests too deeply is refused by the depth of its ``ast``, which is cheap to have, and the rest
runs with room to recurse.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import libcst as cst

from trainlint.fixing.errors import CannotFix
from trainlint.fixing.limits import DEEPEST_TREE, nests_too_deeply, reason_against
from trainlint.fixing.white_space import FORM_FEED_COMMENT

Result = TypeVar("Result")

_STACK_BYTES = 256 * 1024 * 1024
_RECURSION_LIMIT = 20_000

_LONE_FORM_FEED = re.compile(r"^\f(?=[\r\n])", re.MULTILINE)


def with_room_to_recurse(work: Callable[[], Result]) -> Result:
    """The result of ``work``, run in a thread whose stack holds deeply nested code."""
    stack_before = threading.stack_size(_STACK_BYTES)
    limit_before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit_before, _RECURSION_LIMIT))
    try:
        with ThreadPoolExecutor(max_workers=1) as executor:
            return executor.submit(work).result()
    finally:
        threading.stack_size(stack_before)
        sys.setrecursionlimit(limit_before)


def parse_ast(text: str) -> ast.Module:
    """The ``ast`` of ``text``.

    Raises:
        CannotFix: it does not parse, or is too long or too deeply nested for LibCST.
    """
    reason = reason_against(text)
    if reason is not None:
        raise CannotFix(reason)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotFix(f"not valid Python: {error}") from error
    if nests_too_deeply(tree):
        raise CannotFix(f"nests more than {DEEPEST_TREE} levels deep")
    return tree


def compiles(text: str) -> bool:
    """Whether Python accepts ``text`` beyond its grammar (``return`` outside a function ...)."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<fixed>", "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parse_concrete(text: str) -> cst.Module:
    """The LibCST module of ``text``, which gives back ``text`` exactly (see ``render``).

    Call it only on what ``parse_ast`` accepts.

    Raises:
        CannotFix: LibCST cannot parse the text, or would not give it back as it is.
    """
    try:
        module = cst.parse_module(_LONE_FORM_FEED.sub(FORM_FEED_COMMENT, text))
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise CannotFix("LibCST cannot parse this file") from error
    if render(module) != text:
        raise CannotFix("LibCST cannot give back this file unchanged")
    return module


def render(module: cst.Module) -> str:
    """The text of a module, as ``parse_concrete`` received it where nothing was edited."""
    return module.code.replace(FORM_FEED_COMMENT, "\f")


def parse_expression(code: str) -> cst.BaseExpression:
    """The expression ``code``.

    Raises:
        CannotFix: it is not one expression.
    """
    parse_ast(f"({code}\n)")
    try:
        return cst.parse_expression(code.strip())
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise CannotFix(f"not an expression: {code}") from error


def parse_call_argument(code: str) -> cst.Arg:
    """The one argument that ``code`` is: ``x``, ``key=x``, ``*x`` or ``**x``.

    Raises:
        CannotFix: it is not one argument.
    """
    call = parse_expression(f"f({code})")
    if not isinstance(call, cst.Call) or len(call.args) != 1:
        raise CannotFix(f"not an argument: {code}")
    return call.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)


def parse_statements(code: str) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """The statements ``code``, with the comments and blank lines before the first.

    Raises:
        CannotFix: it does not parse, or holds no statement.
    """
    parse_ast(code)
    try:
        module = cst.parse_module(code)
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise CannotFix(f"LibCST cannot parse: {code}") from error
    statements = list(module.body)
    if not statements:
        raise CannotFix(f"not a statement: {code}")
    first = statements[0]
    leading = [*module.header, *first.leading_lines]
    statements[0] = first.with_changes(leading_lines=leading)
    return statements
