"""The arguments of a call while they are edited: order, commas, line breaks, comments."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainlint.fixing.errors import CannotFix

_NO_SPACE = cst.SimpleWhitespace("")


def argument_at(call: cst.Call, argument: str | int) -> int:
    """The place among ``call.args`` of a keyword, or of the positional argument with that index.

    Raises:
        CannotFix: the call has no such argument.
    """
    if isinstance(argument, str):
        found = [
            place
            for place, arg in enumerate(call.args)
            if arg.keyword is not None and arg.keyword.value == argument
        ]
    else:
        positional = [place for place, arg in enumerate(call.args) if _is_positional(arg)]
        found = positional[argument : argument + 1] if argument >= 0 else []
    if not found:
        raise CannotFix(f"the call has no argument {argument!r}")
    return found[0]


def _is_positional(arg: cst.Arg) -> bool:
    return arg.keyword is None and arg.star != "**"


@dataclass(slots=True)
class _Slot:
    place: int | None
    arg: cst.Arg


class ArgumentList:
    """The arguments of one call; each is known by its place in the original call."""

    def __init__(self, call: cst.Call) -> None:
        self._call = call
        self._slots = [_Slot(place, arg) for place, arg in enumerate(call.args)]
        self._before_first: cst.BaseParenthesizableWhitespace = call.whitespace_before_args

    def call(self) -> cst.Call:
        """The call with the arguments as they are now."""
        args = [slot.arg for slot in self._slots]
        if len(args) > 1:
            args = [_with_generator_in_parentheses(arg) for arg in args]
        return self._call.with_changes(args=args, whitespace_before_args=self._before_first)

    def swap(self, first: int, second: int) -> None:
        """Exchange two values; names, commas and comments stay."""
        one, two = self._slot(first), self._slot(second)
        if one.arg.star or two.arg.star:
            raise CannotFix("starred arguments cannot be exchanged")
        value, other = one.arg.value, two.arg.value
        one.arg = one.arg.with_changes(value=other)
        two.arg = two.arg.with_changes(value=value)

    def remove(self, place: int) -> None:
        """Remove an argument with its comma."""
        slot = self._slot(place)
        index = self._slots.index(slot)
        del self._slots[index]
        if not self._slots:
            self._before_first = _unless_comment(self._before_first)
        elif index == len(self._slots):
            last = self._slots[-1]
            last.arg = _as_last(last.arg, replaced=slot.arg)

    def add(self, arg: cst.Arg) -> None:
        """Add a keyword argument last but before ``**options``, or a positional one last."""
        follows_all = _is_positional(arg)
        index = len(self._slots)
        while index > 0 and (
            self._slots[index - 1].arg.star == "**"
            or (follows_all and self._slots[index - 1].arg.keyword is not None)
        ):
            index -= 1
        if index == len(self._slots):
            self._append(arg)
        else:
            comma = cst.Comma(whitespace_after=self._separator(index))
            self._slots.insert(index, _Slot(None, arg.with_changes(comma=comma)))

    def _append(self, arg: cst.Arg) -> None:
        if self._slots:
            last = self._slots[-1]
            arg = _taking_the_end_of(last.arg, arg)
            last.arg = _followed_by(last.arg, self._separator(len(self._slots)))
        self._slots.append(_Slot(None, arg))

    def _separator(self, index: int) -> cst.BaseParenthesizableWhitespace:
        """The white space between the arguments around ``index``, for one more comma."""
        if index > 1:
            comma = self._slots[index - 2 if index == len(self._slots) else index - 1].arg.comma
            if isinstance(comma, cst.Comma):
                return _without_comment(comma.whitespace_after)
        if isinstance(self._before_first, cst.ParenthesizedWhitespace):
            return _without_comment(self._before_first)
        return cst.SimpleWhitespace(" ")

    def _slot(self, place: int) -> _Slot:
        for slot in self._slots:
            if slot.place == place:
                return slot
        raise CannotFix("this argument was removed")


def _with_generator_in_parentheses(arg: cst.Arg) -> cst.Arg:
    if isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar:
        value = arg.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return arg.with_changes(value=value)
    return arg


def _white_space_after(arg: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """What stands between the last argument, or its comma, and the closing parenthesis."""
    if isinstance(arg.comma, cst.Comma):
        return arg.comma.whitespace_after
    return arg.whitespace_after_arg


def _taking_the_end_of(last: cst.Arg, new: cst.Arg) -> cst.Arg:
    end = _without_comment(_white_space_after(last))
    if isinstance(last.comma, cst.Comma):
        return new.with_changes(comma=cst.Comma(whitespace_after=end))
    return new.with_changes(whitespace_after_arg=end)


def _followed_by(last: cst.Arg, separator: cst.BaseParenthesizableWhitespace) -> cst.Arg:
    space = _with_comment_of(_white_space_after(last), separator)
    return last.with_changes(
        comma=cst.Comma(whitespace_after=space),
        whitespace_after_arg=(
            last.whitespace_after_arg if isinstance(last.comma, cst.Comma) else _NO_SPACE
        ),
    )


def _as_last(arg: cst.Arg, replaced: cst.Arg) -> cst.Arg:
    """``arg``, now the last one, with the end of the argument that was last."""
    assert isinstance(arg.comma, cst.Comma)
    end = _without_comment(_white_space_after(replaced))
    space = _with_comment_of(arg.comma.whitespace_after, end)
    if isinstance(replaced.comma, cst.Comma) or _has_comment(space):
        return arg.with_changes(comma=arg.comma.with_changes(whitespace_after=space))
    return arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=space)


def _has_comment(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace) and (
        space.first_line.comment is not None
        or any(line.comment is not None for line in space.empty_lines)
    )


def _without_comment(
    space: cst.BaseParenthesizableWhitespace,
) -> cst.BaseParenthesizableWhitespace:
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    return space.with_changes(
        first_line=cst.TrailingWhitespace(newline=space.first_line.newline), empty_lines=[]
    )


def _unless_comment(
    space: cst.BaseParenthesizableWhitespace,
) -> cst.BaseParenthesizableWhitespace:
    return space if _has_comment(space) else _NO_SPACE


def _with_comment_of(
    commented: cst.BaseParenthesizableWhitespace, space: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """``space``, with the comments that ``commented`` holds."""
    if not isinstance(commented, cst.ParenthesizedWhitespace) or not _has_comment(commented):
        return space
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return commented
    return space.with_changes(first_line=commented.first_line, empty_lines=commented.empty_lines)
