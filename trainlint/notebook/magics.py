"""IPython's own syntax in a cell: replaced by plain Python, line for line, and put back."""

from __future__ import annotations

import re

_LINE_MAGIC = re.compile(r"\s*(?:[%!,;/]|\?{1,2}\s*\S)|\s*[%\w.*]+(?:\[[^\]]*\])*\?{1,2}\s*;?\s*\Z")
_COMMAND_WITHOUT_PERCENT = re.compile(
    r"\s*(?:cat|cd|conda|cp|ls|mamba|mkdir|mv|pip|rm|rmdir|uv)\s+"
    r"(?!(?:and|if|in|is|not|or)\b)[\w./~'\"$-]"
)
_ASSIGNED_MAGIC = re.compile(r"\s*(?P<target>(?:[\w.,*() ]|\[[^\]]*\])+)=\s*[%!]")
_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)")
_PYTHON_CELL_MAGICS = frozenset(
    {"capture", "debug", "memit", "notify", "prun", "time", "timeit", "wandb"}
)
_MARKS = re.compile(r"""\#|'{3}|"{3}|['"]|[\[({]|[\])}]""")


class Magics:
    """Masks the magics of a notebook's cells and remembers what stood there.

    A masked line keeps its place and its indentation. What a magic assigns stays assigned, to a
    value that nobody can know. ``tag`` marks the masked lines and must not occur in the cells.
    """

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._originals: list[str] = []
        self._masked_line = re.compile(
            rf"(?P<indentation>\s*)\S.*# {re.escape(tag)} (?P<number>\d+)\Z"
        )

    def mask(self, lines: list[str]) -> list[str]:
        """The lines of one cell (without line ends), all of them Python."""
        if runs_elsewhere(lines):
            return [self._stand_in("", "pass", line) for line in lines]
        masked = []
        state = _LexicalState()
        magic_indentation: str | None = None
        for line in lines:
            code = "pass"
            if magic_indentation is None and state.at_statement_start:
                code = _stand_in_code(line)
                magic_indentation = line[: len(line) - len(line.lstrip())] if code else None
            if magic_indentation is None:
                state.read(line)
                masked.append(line)
                continue
            masked.append(self._stand_in(magic_indentation, code, line))
            if not line.endswith("\\"):
                magic_indentation = None
        return masked

    def _stand_in(self, indentation: str, code: str, original: str) -> str:
        if not original.strip():
            return original
        self._originals.append(original.removeprefix(indentation))
        return f"{indentation}{code}  # {self._tag} {len(self._originals) - 1}"

    def is_masked(self, line: str) -> bool:
        """Whether the line stands for a magic."""
        return self._masked_line.match(line) is not None

    def unmask(self, lines: list[str]) -> list[str]:
        """The lines with every magic back in its place, indented as its stand-in is now.

        Raises:
            ValueError: a masked line was removed or doubled.
        """
        matches = [self._masked_line.match(line) for line in lines]
        numbers = [int(match["number"]) for match in matches if match]
        if sorted(numbers) != list(range(len(self._originals))):
            raise ValueError("a change touches a line of IPython syntax")
        return [
            match["indentation"] + self._originals[int(match["number"])] if match else line
            for line, match in zip(lines, matches, strict=True)
        ]


def cell_magic(lines: list[str]) -> str | None:
    """The first line with anything on it, if that is a cell magic (``%%time``)."""
    first = next((line for line in lines if line.strip()), "")
    return first if _CELL_MAGIC.match(first) else None


def runs_elsewhere(lines: list[str]) -> bool:
    """Whether a cell magic hands the cell to something else than this notebook's Python."""
    magic = _CELL_MAGIC.match(cell_magic(lines) or "")
    return magic is not None and magic["name"] not in _PYTHON_CELL_MAGICS


def _stand_in_code(line: str) -> str:
    """The code to put in the place of a magic, or nothing if the line is none."""
    assigned = _ASSIGNED_MAGIC.match(line)
    if assigned:
        return f"{assigned['target'].strip()} = get_ipython()"
    is_magic = _LINE_MAGIC.match(line) or _COMMAND_WITHOUT_PERCENT.match(line)
    return "pass" if is_magic else ""


class _LexicalState:
    """Whether the next line starts a statement: no open bracket, string or backslash before it."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._continued = False

    @property
    def at_statement_start(self) -> bool:
        return not (self._depth or self._quote or self._continued)

    def read(self, line: str) -> None:
        """Take in one more line."""
        self._continued = False
        index = 0
        while index < len(line):
            if self._quote:
                index = self._end_of_string(line, index)
                continue
            mark = _MARKS.search(line, index)
            if mark is None or mark[0] == "#":
                self._continued = mark is None and line.endswith("\\")
                return
            index = mark.end()
            self._note(mark[0])

    def _note(self, mark: str) -> None:
        if mark in "[({":
            self._depth += 1
        elif mark in "])}":
            self._depth = max(0, self._depth - 1)
        else:
            self._quote = mark

    def _end_of_string(self, line: str, index: int) -> int:
        """Where the open string ends, or the line if it goes on below."""
        for match in re.finditer(rf"\\.|{self._quote}", line[index:]):
            if match[0] == self._quote:
                self._quote = ""
                return index + match.end()
        if len(self._quote) == 1 and not line.endswith("\\"):
            self._quote = ""
        return len(line)
