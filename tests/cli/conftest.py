"""The command line inside this process: as fast as a call, for everything but its ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.command_line import THIRD_PARTY, Ended
from trainlint.cli import command_line
from trainlint.registry import all_rules

Check = Callable[..., Ended]


@pytest.fixture
def demo_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The demo rules are installed in this process."""
    monkeypatch.syspath_prepend(str(THIRD_PARTY))
    all_rules.cache_clear()
    yield
    all_rules.cache_clear()


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo_rules: None) -> Check:
    """``trainlint check`` in ``tmp_path``, in concise format, unless the arguments say else."""
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)

    def run(*arguments: str, stdin: bytes = b"") -> Ended:
        default = [] if "--output-format" in arguments else ["--output-format", "concise"]
        result = CliRunner().invoke(command_line, ["check", *default, *arguments], input=stdin)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file below ``tmp_path``."""

    def write_file(name: str, content: str | bytes = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
