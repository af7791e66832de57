"""Where output goes, and whether in colour."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click

from trainlint.cli.faults import UsageFault


def wants_colour(choice: str, stream: TextIO) -> bool:
    """Decide ``--color``: ``always``, ``never``, or by the stream and the environment.

    ``NO_COLOR`` and ``FORCE_COLOR`` count when they are set to anything but nothing.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write_output(text: str, output_file: str | None) -> None:
    """Print ``text``, which may hold colours, or write it to a file.

    Raises:
        UsageFault: the file cannot be written.
    """
    if output_file is None:
        click.echo(text, nl=False, color=True)
        return
    try:
        with open(output_file, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise UsageFault(f"cannot write {output_file}: {error.strerror}") from error


def say(text: str) -> None:
    """Print a line about the run, not part of its output."""
    click.echo(text, err=True)


def shows_progress() -> bool:
    """Whether somebody watches."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
