"""Finds the configuration file that is nearest to a checked file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from trainlint.catalogue import RuleFacts
from trainlint.config.errors import ConfigError
from trainlint.config.options import Options
from trainlint.config.selection import SelectorTable
from trainlint.config.settings import Settings

OWN_FILE = "trainlint.toml"
SHARED_FILE = "pyproject.toml"


class SettingsResolver:
    """The settings of every folder, each configuration file read once."""

    def __init__(
        self,
        command_line: Options,
        working_directory: str,
        load_rules: Callable[[Settings], Sequence[RuleFacts]],
    ) -> None:
        """``load_rules`` gets the settings of the run, and is called once, when rules matter."""
        self._command_line = command_line
        self._working_directory = working_directory
        self._load_rules = load_rules
        self._by_folder: dict[str, Settings] = {}
        self._without_file = self._settings(working_directory, Options("the default settings"))

    def for_folder(self, folder: str) -> Settings:
        """The settings for the files that lie directly in this folder (absolute path).

        Raises:
            ConfigError: the configuration file cannot be used.
        """
        known = self._by_folder.get(folder)
        if known is None:
            known = self._own_settings(folder) or self._inherited(folder)
            self._by_folder[folder] = known
        return known

    def for_run(self) -> Settings:
        """The settings of the working directory: they decide on output and exit code.

        Raises:
            ConfigError: the configuration file cannot be used.
        """
        return self.for_folder(self._working_directory)

    @cached_property
    def _selectors(self) -> SelectorTable:
        return SelectorTable(self._load_rules(self.for_run()))

    def _inherited(self, folder: str) -> Settings:
        parent = os.path.dirname(folder)
        return self._without_file if parent == folder else self.for_folder(parent)

    def _own_settings(self, folder: str) -> Settings | None:
        options = read_folder(folder, self._working_directory)
        return None if options is None else self._settings(folder, options)

    def _settings(self, root: str, options: Options) -> Settings:
        return Settings(
            root,
            self._working_directory,
            options,
            self._command_line,
            lambda: self._selectors,
        )


def read_folder(folder: str, working_directory: str) -> Options | None:
    """The options of the configuration file in exactly this folder, if there is one.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or holds a wrong key or value.
    """
    for name, table_of in ((OWN_FILE, _whole), (SHARED_FILE, _tool_table)):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            origin = _displayed(path, working_directory)
            table = _read(path, origin, table_of)
            if table is not None:
                return Options.from_table(table, origin)
    return None


def _read(
    path: str, origin: str, table_of: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"{origin}: cannot read: {error.strerror}") from error
    if table_of is _tool_table and b"trainlint" not in data:
        # Most files on the way up are not about us: spare them the parser, and their users an
        # error about somebody else's file.
        return None
    return table_of(_parse(data, origin))


def _parse(data: bytes, origin: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{origin}: not valid TOML: {error}") from error


def _whole(document: dict[str, Any]) -> dict[str, Any]:
    return document


def _tool_table(document: dict[str, Any]) -> dict[str, Any] | None:
    tools = document.get("tool")
    table = tools.get("trainlint") if isinstance(tools, dict) else None
    return table if isinstance(table, dict) else None


def _displayed(path: str, working_directory: str) -> str:
    prefix = working_directory + os.sep
    return path.removeprefix(prefix)
