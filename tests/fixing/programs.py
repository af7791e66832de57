"""Random programs in every layout that Python allows, for property tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from hypothesis import strategies as st

_COMPOUNDS = (
    ("for x in y:",),
    ("while a :",),
    ("if a:", "else:"),
    ("with a as b, c:",),
    ("try:", "except E as e:", "else:", "finally:"),
    ("def f(x, *y):",),
    ("async def f(): ",),
    ("@a\n@b(1)\nclass A( B ):",),
    ("if (a and\n        b):",),
)


class _Writer:
    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int], indent: str) -> None:
        self._draw = draw
        self._indent = indent
        self._numbers = itertools.count()

    def block(self, depth: int) -> Iterator[str]:
        for _ in range(1 + self._choose(2 + (depth == 0))):
            yield from self._gap(depth)
            if depth < 2 and self._choose(3) == 0:
                yield from self._compound(depth)
            else:
                yield from self._simple(depth)

    def _choose(self, options: int) -> int:
        return self._draw(st.integers(0, options - 1))

    def _gap(self, depth: int) -> Iterator[str]:
        for kind in range(self._choose(4)):
            indent = self._indent * depth
            if self._choose(2):
                yield ["", "\f"][self._choose(2)] if kind else ""
            else:
                yield f"{indent}{self._comment()}"

    def _comment(self) -> str:
        return f"# comment {next(self._numbers)};"

    def _end(self) -> str:
        return ["", "  " + self._comment(), " ;", " "][self._choose(4)]

    def _statement(self) -> str:
        return f"s{next(self._numbers)}()"

    def _simple(self, depth: int) -> Iterator[str]:
        indent = self._indent * depth
        kind = self._choose(6)
        if kind == 0:
            yield f"{indent}{self._statement()} ; {self._statement()};{self._statement()}" + (
                self._end()
            )
        elif kind == 1:
            yield f"{indent}x = ({self._comment()}"
            yield "weird, "
            yield f"{indent}  {self._statement()}){self._end()}"
        elif kind == 2:
            yield f'{indent}x = """ü{next(self._numbers)}'
            yield "text"
            yield f'  text""" + é({self._statement()}){self._end()}'
        elif kind == 3:
            yield f"{indent}x = \\"
            yield f" {self._statement()}{self._end()}"
        else:
            yield f"{indent}{self._statement()}{self._end()}"

    def _compound(self, depth: int) -> Iterator[str]:
        indent = self._indent * depth
        one_line = self._choose(4) == 0
        for header in _COMPOUNDS[self._choose(len(_COMPOUNDS))]:
            lines = [f"{indent}{line}" for line in header.split("\n")]
            yield from lines[:-1]
            if one_line:
                yield f"{lines[-1]} {self._statement()}{self._end()}"
            else:
                yield lines[-1] + ["", "  " + self._comment()][self._choose(2)]
                yield from self.block(depth + 1)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a program that parses."""
    writer = _Writer(draw, draw(st.sampled_from(["    ", "  ", "\t", "   "])))
    line_end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = line_end.join(writer.block(0))
    return text + draw(st.sampled_from([line_end, "", line_end * 3]))
