"""``--show-settings`` and ``--show-files``."""

from __future__ import annotations

import json
from collections.abc import Iterable

from trainlint.config import PathPatterns, Settings


def settings_text(settings: Settings) -> str:
    """The settings that hold in the working directory, one a line, as TOML values.

    Raises:
        ConfigError: a selector names no installed rule.
    """
    rules = settings.rule_set
    names = {rule.code: rule.name for rule in settings.selectors().rules}
    lines = [
        f"# from: {settings.source}",
        f"# patterns of the file start at: {settings.root}",
        f"rules = {_array(f'{code} {names[code]}' for code in rules.codes)}",
        f"per-file-ignores = {_per_file_ignores(settings)}",
        f"exclude = {_array(_patterns(settings.exclude))}",
        f"force-exclude = {json.dumps(settings.force_exclude)}",
        f"fail-on = {json.dumps(settings.fail_on.value)}",
        f"output-format = {json.dumps(settings.output_format)}",
        f"fix = {json.dumps(settings.fix)}",
        f"unsafe-fixes = {json.dumps(settings.unsafe_fixes)}",
        f"cache-dir = {json.dumps(settings.cache_dir)}",
    ]
    return "\n".join(lines) + "\n"


def files_text(paths: Iterable[str]) -> str:
    """The paths, one a line."""
    return "".join(f"{path}\n" for path in sorted(paths))


def _patterns(groups: Iterable[PathPatterns]) -> Iterable[str]:
    return (pattern for group in groups for pattern in group.patterns)


def _per_file_ignores(settings: Settings) -> str:
    pairs = settings.per_file_ignores
    return "{" + ", ".join(f" {json.dumps(p)} = {json.dumps(list(s))} " for p, s in pairs) + "}"


def _array(values: Iterable[str]) -> str:
    lines = [f"    {json.dumps(value)}," for value in values]
    return "\n".join(["[", *lines, "]"]) if lines else "[]"
