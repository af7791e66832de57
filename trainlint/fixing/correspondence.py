"""Which LibCST node stands for an ``ast`` node.

Both parsers see the same text, so a node is found by its place and kind. Where their ideas of a
place differ, the LibCST place is brought to the one of ``ast``: a tuple and a generator include
their parentheses there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from trainlint.fixing.places import Places, Range

STATEMENTS: Mapping[type[ast.stmt], tuple[type[cst.CSTNode], ...]] = {
    ast.FunctionDef: (cst.FunctionDef,),
    ast.AsyncFunctionDef: (cst.FunctionDef,),
    ast.ClassDef: (cst.ClassDef,),
    ast.Return: (cst.Return,),
    ast.Delete: (cst.Del,),
    ast.Assign: (cst.Assign,),
    ast.AugAssign: (cst.AugAssign,),
    ast.AnnAssign: (cst.AnnAssign,),
    ast.For: (cst.For,),
    ast.AsyncFor: (cst.For,),
    ast.While: (cst.While,),
    ast.If: (cst.If,),
    ast.With: (cst.With,),
    ast.AsyncWith: (cst.With,),
    ast.Match: (cst.Match,),
    ast.Raise: (cst.Raise,),
    ast.Try: (cst.Try,),
    ast.Assert: (cst.Assert,),
    ast.Import: (cst.Import,),
    ast.ImportFrom: (cst.ImportFrom,),
    ast.Global: (cst.Global,),
    ast.Nonlocal: (cst.Nonlocal,),
    ast.Expr: (cst.Expr,),
    ast.Pass: (cst.Pass,),
    ast.Break: (cst.Break,),
    ast.Continue: (cst.Continue,),
}
_NEWER_STATEMENTS: Mapping[str, type[cst.CSTNode]] = {
    "TryStar": cst.TryStar,
    "TypeAlias": cst.TypeAlias,
}

EXPRESSIONS: Mapping[type[ast.expr], tuple[type[cst.CSTNode], ...]] = {
    ast.BoolOp: (cst.BooleanOperation,),
    ast.NamedExpr: (cst.NamedExpr,),
    ast.BinOp: (cst.BinaryOperation,),
    ast.UnaryOp: (cst.UnaryOperation,),
    ast.Lambda: (cst.Lambda,),
    ast.IfExp: (cst.IfExp,),
    ast.Dict: (cst.Dict,),
    ast.Set: (cst.Set,),
    ast.ListComp: (cst.ListComp,),
    ast.SetComp: (cst.SetComp,),
    ast.DictComp: (cst.DictComp,),
    ast.GeneratorExp: (cst.GeneratorExp,),
    ast.Await: (cst.Await,),
    ast.Yield: (cst.Yield,),
    ast.YieldFrom: (cst.Yield,),
    ast.Compare: (cst.Comparison,),
    ast.Call: (cst.Call,),
    ast.JoinedStr: (cst.FormattedString, cst.ConcatenatedString),
    ast.Constant: (
        cst.Integer,
        cst.Float,
        cst.Imaginary,
        cst.SimpleString,
        cst.ConcatenatedString,
        cst.Ellipsis,
        cst.Name,
    ),
    ast.Attribute: (cst.Attribute,),
    ast.Subscript: (cst.Subscript,),
    ast.Name: (cst.Name,),
    ast.List: (cst.List,),
    ast.Tuple: (cst.Tuple,),
}

_STATEMENT_TYPES = frozenset(kind for kinds in STATEMENTS.values() for kind in kinds) | frozenset(
    _NEWER_STATEMENTS.values()
)
_EXPRESSION_TYPES = frozenset(kind for kinds in EXPRESSIONS.values() for kind in kinds)

Start = tuple[int, int]


class Correspondence:
    """Finds LibCST nodes by place."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._loaded: set[int] = set()
        self._statements: dict[Start, list[cst.CSTNode]] = {}
        self._expressions: dict[Range, list[cst.CSTNode]] = {}

    def statement(self, node: ast.stmt, start: Start) -> cst.CSTNode | None:
        """The statement of the kind of ``node`` that begins at ``start``."""
        self._load(start[0])
        kinds = STATEMENTS.get(type(node))
        if kinds is None:
            kinds = (_NEWER_STATEMENTS[type(node).__name__],)
        return _only(self._statements.get(start, []), kinds)

    def expression(self, node: ast.expr, place: Range) -> cst.CSTNode | None:
        """The expression of the kind of ``node`` that fills ``place``."""
        self._load(place[0])
        kinds = EXPRESSIONS.get(type(node), ())
        return _only(self._expressions.get(place, []), kinds)

    def _load(self, line: int) -> None:
        index = self._places.top_level_index(line)
        if index in self._loaded:
            return
        self._loaded.add(index)
        for node in self._places.load(index):
            if type(node) in _STATEMENT_TYPES:
                start = self._places.range(node)[:2]
                self._statements.setdefault(start, []).append(node)
            elif type(node) in _EXPRESSION_TYPES:
                self._expressions.setdefault(self._range_in_ast(node), []).append(node)
            if isinstance(node, cst.Call):
                self._add_bare_generator(node)

    def _range_in_ast(self, node: cst.CSTNode) -> Range:
        if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar:
            start, end = self._places.range(node.lpar[-1]), self._places.range(node.rpar[0])
            return (*start[:2], *end[2:])
        return self._places.range(node)

    def _add_bare_generator(self, call: cst.Call) -> None:
        """In ``sum(x for x in y)`` the generator of ``ast`` owns the parentheses of the call."""
        generator = call.args[0].value if len(call.args) == 1 else None
        if isinstance(generator, cst.GeneratorExp) and not generator.lpar:
            line, column, *_ = self._places.range(call.whitespace_before_args)
            end = self._places.range(call)[2:]
            self._expressions.setdefault((line, column - 1, *end), []).append(generator)


def _only(nodes: list[cst.CSTNode], kinds: tuple[type[cst.CSTNode], ...]) -> cst.CSTNode | None:
    matching = [node for node in nodes if isinstance(node, kinds)]
    return matching[0] if len(matching) == 1 else None
