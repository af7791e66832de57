"""What goes wrong in a configuration, as one line for the user."""

from __future__ import annotations

from collections.abc import Iterable


class ConfigError(Exception):
    """A setting that cannot be used; the message says which, where, and what to do."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the user most likely meant, if any is close."""
    import difflib

    by_lower_case = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=0.5)
    return by_lower_case[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or nothing when no known word is close."""
    suggestion = nearest(word, known)
    return f"; did you mean {suggestion!r}?" if suggestion else ""
