"""The ``trainlint`` command: runs the command line and turns every end into an exit code."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click

from trainlint.cli import command_line

INTERRUPTED = 130
"""What shells report for a program that Ctrl-C ended."""


def main() -> None:
    """Run ``trainlint`` with the arguments of this process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        _never_fail_on_odd_characters(stream)
    try:
        code = command_line.main(prog_name="trainlint", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Nobody reads on (``trainlint check | head``): keep the interpreter from complaining
        # when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # whatever it is, it ends here, and says so
        _report_own_fault(error)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _never_fail_on_odd_characters(stream: TextIO) -> None:
    """A path or a message that the terminal cannot show must not end the run."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _report_own_fault(error: Exception) -> None:
    import traceback

    from trainlint.cli.faults import HOW_TO_REPORT

    traceback.print_exception(error)
    click.echo(f"trainlint failed: {type(error).__name__}: {error}", err=True)
    click.echo(HOW_TO_REPORT, err=True)


if __name__ == "__main__":
    main()
