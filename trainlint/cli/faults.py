"""What to say when a run fails: by the user's mistake, or by ours."""

from __future__ import annotations

import click

HOW_TO_REPORT = (
    "This is a mistake in trainlint, not in your code. Please report it, with the lines above "
    "and the output of `trainlint --version`, where you got trainlint from."
)


class UsageFault(click.ClickException):
    """Something the user can put right; one line, exit code 2."""

    exit_code = 2
