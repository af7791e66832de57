"""Which versions of a package a project says that it works with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Version = tuple[int, ...]

_FILES = (
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "requirements/base.txt",
    "requirements/requirements.txt",
    "environment.yml",
    "environment.yaml",
)
_LOWER_BOUND = re.compile(r"(?:==|>=|~=|>|(?<![<>!=])=)\s*(\d+(?:\.\d+)*)")


def requirement_files(root: Path) -> list[Path]:
    """The files in which a project declares what it needs, whether they exist or not."""
    return [root / name for name in _FILES]


def oldest_declared(root: Path, package: str) -> Version | None:
    """The lowest version of a package that a project declares; None where it names no bound."""
    found = [
        version
        for path in requirement_files(root)
        for version in _bounds(_text(path), re.escape(package))
    ]
    return min(found, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _bounds(text: str, package: str) -> Iterator[Version]:
    """``torch>=1.10``, ``"torch ~= 2.1"``, ``- pytorch=1.7`` and ``torch = "^2.1"``."""
    named = rf"(?:^|[\s\"'\[,\-])(?:py)?{package}\s*(?:\[[\w,\s-]*\]\s*)?"
    pattern = rf"{named}((?:[<>=!~]=?|==)[^\"'\n;#]*|=\s*[\"'][\^~>=\s]*\d[\d.]*)"
    for match in re.finditer(pattern, text, re.MULTILINE):
        declared = re.sub(r"=\s*[\"'][\^~>=\s]*", "==", match[1])
        bound = _LOWER_BOUND.search(declared)
        if bound is not None:
            yield tuple(int(part) for part in bound[1].split("."))
