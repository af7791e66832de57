"""Edits of expressions, and the parentheses that a new expression needs in its place."""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst as cst

from trainlint.fixing.document import Document
from trainlint.fixing.parsing import parse_expression
from trainlint.fixing.plan import Rebuilt

ExpressionEdit = Callable[[cst.CSTNode, Rebuilt], cst.CSTNode]

_NEVER_BARE = (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)
_PRIMARIES = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def replacement(document: Document, target: cst.BaseExpression, code: str) -> ExpressionEdit:
    """Puts the expression ``code`` in the place of ``target``."""
    new = parse_expression(code)
    return lambda _updated, _rebuilt: _fitted(document, target, new)


def unwrapping(
    document: Document, target: cst.BaseExpression, part: cst.BaseExpression
) -> ExpressionEdit:
    """Keeps only ``part`` of ``target``."""

    def edit(updated: cst.CSTNode, rebuilt: Rebuilt) -> cst.CSTNode:
        kept = rebuilt(part)
        assert isinstance(kept, cst.BaseExpression)
        return _fitted(document, target, kept)

    return edit


def wrapping(document: Document, target: cst.BaseExpression, function: str) -> ExpressionEdit:
    """Makes ``target`` the argument of a call."""
    called = parse_expression(function)
    start, _ = document.span(target)
    touches_a_word = bool(target.lpar) and document.text[start - 1 : start].isidentifier()

    def edit(updated: cst.CSTNode, rebuilt: Rebuilt) -> cst.CSTNode:
        assert isinstance(updated, cst.BaseExpression)
        call = cst.Call(_as_primary(called), [cst.Arg(_as_only_argument(document, updated))])
        return _parenthesized(call) if touches_a_word else call

    return edit


def calling(arguments: str) -> ExpressionEdit:
    """Calls the expression with ``arguments``."""
    model = parse_expression(f"f({arguments})")
    assert isinstance(model, cst.Call)

    def edit(updated: cst.CSTNode, rebuilt: Rebuilt) -> cst.CSTNode:
        assert isinstance(updated, cst.BaseExpression)
        return model.with_changes(func=_as_primary(updated))

    return edit


def _fitted(
    document: Document, target: cst.BaseExpression, new: cst.BaseExpression
) -> cst.BaseExpression:
    """``new`` with the parentheses that the place of ``target`` needs, and no others."""
    if target.lpar:
        return new.with_changes(lpar=target.lpar, rpar=target.rpar)
    if new.lpar or not _needs_parentheses(document, target, new):
        return new
    return _parenthesized(new)


def _needs_parentheses(
    document: Document, target: cst.BaseExpression, new: cst.BaseExpression
) -> bool:
    """Whether ``new`` would mean something else without: asked of Python's own grammar."""
    outermost = _outermost_expression(document, target)
    if outermost is target and isinstance(new, _NEVER_BARE):
        return True
    code = document.module.code_for_node(new)
    start, end = document.span(target)
    whole_start, whole_end = document.span(outermost)
    before, after = document.text[whole_start:start], document.text[end:whole_end]
    if isinstance(outermost, cst.Yield):
        before, after = f"({before}", f"{after})"
    try:
        bare = ast.parse(f"{before}{code}{after}", mode="eval")
        meant = ast.parse(f"{before}({code}){after}", mode="eval")
    except SyntaxError:
        return True
    return ast.dump(bare) != ast.dump(meant)


def _outermost_expression(document: Document, node: cst.BaseExpression) -> cst.BaseExpression:
    outermost = node
    above = document.parent(node)
    while above is not None and not isinstance(
        above, (cst.BaseSmallStatement, cst.BaseStatement, cst.BaseSuite)
    ):
        if isinstance(above, cst.BaseExpression):
            outermost = above
        above = document.parent(above)
    return outermost


def _as_only_argument(document: Document, value: cst.BaseExpression) -> cst.BaseExpression:
    has_comment = any("#" in document.module.code_for_node(p) for p in (*value.lpar, *value.rpar))
    if isinstance(value, cst.Tuple | cst.Yield):
        return value if value.lpar else _parenthesized(value)
    return value if has_comment else value.with_changes(lpar=[], rpar=[])


def _as_primary(value: cst.BaseExpression) -> cst.BaseExpression:
    return value if value.lpar or isinstance(value, _PRIMARIES) else _parenthesized(value)


def _parenthesized(value: cst.BaseExpression) -> cst.BaseExpression:
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
