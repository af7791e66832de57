"""The command line. Commands are imported when they are called: starting up must stay fast."""

from __future__ import annotations

import importlib
import os

import click

from trainlint import __version__
from trainlint.cli.commands import CommandGroup
from trainlint.cli.faults import UsageFault

_COMMANDS = {
    "check": "trainlint.cli.check",
    "probe": "trainlint.runtime.command",
    "recipe": "trainlint.cli.recipe",
    "rule": "trainlint.cli.rule",
}


class _LazyCommands(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        try:
            module = importlib.import_module(_COMMANDS[cmd_name])
        except ModuleNotFoundError as error:
            if cmd_name != "probe":
                raise
            missing = error.name or ""
            return None if missing.startswith("trainlint.") else _needs_extra(missing)
        command: click.Command = getattr(module, cmd_name)
        return command

    def meant_instead(self, ctx: click.Context, name: str) -> str:
        if os.path.exists(name):
            return f"; to check it: trainlint check {name}"
        return super().meant_instead(ctx, name)


def _needs_extra(missing: str) -> click.Command:
    """A ``probe`` that says what to install."""

    @click.command(
        "probe",
        short_help="Run a training script for a few steps and judge it (needs an extra).",
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def probe(arguments: tuple[str, ...]) -> None:
        raise UsageFault(
            f"`trainlint probe` needs {missing}, which is not installed: "
            "pip install 'trainlint[probe]'"
        )

    return probe


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trainlint", message="%(prog)s %(version)s")
def command_line() -> None:
    """Find the training bugs that do not crash."""
