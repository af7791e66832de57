"""What one source of settings says: a configuration file, or the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainlint.config.errors import ConfigError, did_you_mean
from trainlint.finding import Severity
from trainlint.output import FORMATS

PerFileIgnores = tuple[tuple[str, tuple[str, ...]], ...]
"""Pairs of a path pattern and the selectors that are ignored in files that match it."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings that one source gives; ``None`` and ``()`` where it says nothing.

    ``origin`` is how messages name the source: the path of the file, or "the command line".
    """

    origin: str
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: PerFileIgnores | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool | None = None
    fail_on: Severity | None = None
    cache_dir: str | None = None
    output_format: str | None = None
    fix: bool | None = None
    unsafe_fixes: bool | None = None

    @classmethod
    def from_table(cls, table: Mapping[str, Any], origin: str) -> Options:
        """Read a ``[tool.trainlint]`` table, or the whole of a ``trainlint.toml``.

        Raises:
            ConfigError: a key is unknown, or a value has the wrong type.
        """
        values: dict[str, Any] = {}
        for key, value in table.items():
            read = _READERS.get(key)
            if read is None:
                raise ConfigError(f"{origin}: unknown key {key!r}{did_you_mean(key, _READERS)}")
            try:
                values[key.replace("-", "_")] = read(value)
            except _WrongTypeError as error:
                raise ConfigError(f"{origin}: {key!r} must be {error}, not {value!r}") from None
        return cls(origin, **values)


class _WrongTypeError(Exception):
    """The message says what the value must be."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _WrongTypeError("a string")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongTypeError("true or false")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _WrongTypeError("a list of strings")
    return tuple(value)


def _per_file_ignores(value: object) -> PerFileIgnores:
    if not isinstance(value, dict):
        raise _WrongTypeError("a table of path patterns and lists of rules")
    return tuple((pattern, _texts(selectors)) for pattern, selectors in value.items())


def _severity(value: object) -> Severity:
    names = [severity.value for severity in Severity]
    if value not in names:
        raise _WrongTypeError(f"one of {', '.join(names)}")
    return Severity(value)


def _format(value: object) -> str:
    if value not in FORMATS:
        raise _WrongTypeError(f"one of {', '.join(FORMATS)}")
    return _text(value)


_READERS: dict[str, Callable[[object], object]] = {
    "select": _texts,
    "ignore": _texts,
    "extend-select": _texts,
    "per-file-ignores": _per_file_ignores,
    "exclude": _texts,
    "extend-exclude": _texts,
    "force-exclude": _flag,
    "fail-on": _severity,
    "cache-dir": _text,
    "output-format": _format,
    "fix": _flag,
    "unsafe-fixes": _flag,
}


def split_selectors(values: tuple[str, ...]) -> tuple[str, ...]:
    """Command-line values, each a list separated by commas, as one tuple."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
