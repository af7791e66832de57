"""Where a text's comments are, and on which lines another one may stand."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment from its ``#`` to the end of its line (columns count from 0)."""

    line: int
    column: int
    text: str
    own_line: bool


@dataclass(slots=True)
class Comments:
    """The comments of a text, by line.

    ``open_line_ends``: lines whose end lies inside a string or after a backslash, so that no
    comment can be put there, and none can be put on a line of its own below.
    """

    by_line: dict[int, Comment] = field(default_factory=dict)
    open_line_ends: set[int] = field(default_factory=set)

    def line_below_block(self, comment: Comment) -> int | None:
        """The line directly below the block of own-line comments that ``comment`` is part of."""
        if not comment.own_line:
            return None
        line = comment.line + 1
        while (below := self.by_line.get(line)) is not None and below.own_line:
            line += 1
        return line


def find_comments(text: str) -> Comments:
    """Tokenize ``text``; if it is not Python to the end, what came before the fault counts."""
    comments = Comments()
    string_starts: list[int] = []
    try:
        for token in _tokens(text):
            name = tokenize.tok_name[token.type]
            if token.type == tokenize.COMMENT:
                _add_comment(comments, token, text)
            elif name.endswith("STRING_START"):
                string_starts.append(token.start[0])
            elif name.endswith("STRING_END"):
                comments.open_line_ends.update(range(string_starts.pop(), token.end[0]))
            elif token.type == tokenize.STRING:
                comments.open_line_ends.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        pass
    comments.open_line_ends.update(_backslash_lines(text, comments))
    return comments


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(_with_plain_line_ends(text)).readline)


def _with_plain_line_ends(text: str) -> str:
    """The same lines and columns, in the one form that all tokenizer versions agree on."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _add_comment(comments: Comments, token: tokenize.TokenInfo, text: str) -> None:
    line, column = token.start
    own_line = not token.line[:column].strip()
    if line == 1 and text.startswith("\ufeff"):
        column += 1
    comments.by_line[line] = Comment(line, column, token.string, own_line)


def _backslash_lines(text: str, comments: Comments) -> list[int]:
    return [
        number
        for number, line in enumerate(_with_plain_line_ends(text).split("\n"), start=1)
        if line.endswith("\\") and number not in comments.by_line
    ]
