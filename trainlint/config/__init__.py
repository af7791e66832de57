"""Settings: from ``pyproject.toml`` or ``trainlint.toml`` and the command line."""

from trainlint.config.errors import ConfigError
from trainlint.config.options import Options, split_selectors
from trainlint.config.path_patterns import PathPatterns
from trainlint.config.resolver import SettingsResolver
from trainlint.config.selection import RuleSet, Selector, SelectorTable
from trainlint.config.settings import DEFAULT_EXCLUDES, Settings

__all__ = [
    "DEFAULT_EXCLUDES",
    "ConfigError",
    "Options",
    "PathPatterns",
    "RuleSet",
    "Selector",
    "SelectorTable",
    "Settings",
    "SettingsResolver",
    "split_selectors",
]
