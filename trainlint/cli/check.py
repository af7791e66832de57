"""``trainlint check``: the options. What they do is in ``trainlint.cli.check_run``."""

from __future__ import annotations

import os
from typing import Any

import click

from trainlint.cli.arguments import CheckArguments
from trainlint.cli.faults import UsageFault
from trainlint.config import Options, split_selectors
from trainlint.config.options import PerFileIgnores
from trainlint.finding import Severity
from trainlint.output import FORMATS

_SEVERITIES = ("error", "warning", "info")


def _selectors(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    return split_selectors(values)


def _per_file_ignores(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> PerFileIgnores | None:
    pairs = []
    for pair in split_selectors(values):
        pattern, separator, selector = pair.rpartition(":")
        if not separator or not pattern or not selector:
            raise click.BadParameter(f"{pair!r} is not of the form PATTERN:RULE")
        pairs.append((pattern, (selector,)))
    return tuple(pairs) or None


@click.command(short_help="Check Python files and notebooks for training bugs.")
@click.argument("paths", nargs=-1)
@click.option("--fix/--no-fix", default=None, help="Repair what can be repaired safely.")
@click.option(
    "--unsafe-fixes/--no-unsafe-fixes", default=None, help="Allow repairs that need a look, too."
)
@click.option("--diff", is_flag=True, help="Show what --fix would change; write nothing.")
@click.option(
    "--output-format", type=click.Choice(FORMATS), help="How to print findings.  [default: full]"
)
@click.option("-o", "--output-file", metavar="FILE", help="Print to a file instead.")
@click.option(
    "--select",
    multiple=True,
    metavar="RULE,...",
    callback=_selectors,
    help="Rules to run: codes, prefixes of codes, names, families, or ALL.",
)
@click.option(
    "--ignore", multiple=True, metavar="RULE,...", callback=_selectors, help="Rules not to run."
)
@click.option(
    "--extend-select",
    multiple=True,
    metavar="RULE,...",
    callback=_selectors,
    help="Rules to run on top of those that run anyway.",
)
@click.option(
    "--per-file-ignores",
    multiple=True,
    metavar="PATTERN:RULE,...",
    callback=_per_file_ignores,
    help="Rules not to run on files that match a pattern.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN,...",
    callback=_selectors,
    help="Files and folders to leave out, instead of the default ones.",
)
@click.option(
    "--extend-exclude",
    multiple=True,
    metavar="PATTERN,...",
    callback=_selectors,
    help="Files and folders to leave out as well.",
)
@click.option(
    "--force-exclude/--no-force-exclude",
    default=None,
    help="Leave excluded files out even if they are named as PATHS.",
)
@click.option("-n", "--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option(
    "--cache-dir", metavar="FOLDER", help="Where to keep the cache.  [default: .trainlint_cache]"
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes to use at most.  [default: one a processor core]",
)
@click.option(
    "--stdin-filename", metavar="FILE", help="The name of the file that comes in when PATHS is -."
)
@click.option(
    "--fail-on",
    type=click.Choice(_SEVERITIES),
    help="The least severity that makes the exit code 1.  [default: warning]",
)
@click.option("-e", "--exit-zero", is_flag=True, help="Exit with 0 in spite of findings.")
@click.option("--statistics", is_flag=True, help="Print how often each rule fired, instead.")
@click.option("--add-ignore", is_flag=True, help="Write a comment that hides each finding.")
@click.option("--baseline", metavar="FILE", help="Hide the findings that are recorded in a file.")
@click.option("--write-baseline", is_flag=True, help="Record the findings in the baseline.")
@click.option("--show-settings", is_flag=True, help="Print the settings that hold, and exit.")
@click.option("--show-files", is_flag=True, help="Print the files to check, and exit.")
@click.option(
    "--color",
    "colour",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    help="When to use colour; NO_COLOR is honoured.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say more about the run (on stderr).")
@click.option("-q", "--quiet", is_flag=True, help="Print findings and errors only.")
@click.option("--no-scout", is_flag=True, hidden=True)
@click.pass_context
def check(context: click.Context, /, **given: Any) -> None:
    """Check Python files and notebooks for training bugs.

    PATHS are files and folders (default: the working directory), or - for standard input.

    Exit codes: 0 nothing found at or above --fail-on; 1 something found; 2 wrong usage or
    configuration, or a file that could not be checked.
    """
    from trainlint.cli.check_run import run_check

    context.exit(run_check(_arguments(given)))


def _arguments(given: dict[str, Any]) -> CheckArguments:
    paths: tuple[str, ...] = given["paths"] or (".",)
    if "-" in paths and len(paths) > 1:
        raise UsageFault("standard input (-) cannot be checked together with other paths")
    if given["stdin_filename"] and paths != ("-",):
        raise UsageFault("--stdin-filename needs - as the only path")
    if given["write_baseline"] and not given["baseline"]:
        raise UsageFault("--write-baseline needs --baseline FILE: where to record the findings")
    if given["add_ignore"] and (given["fix"] or given["diff"]):
        raise UsageFault("--add-ignore cannot be combined with --fix or --diff")
    return CheckArguments(
        paths=paths,
        options=_options(given),
        stdin_filename=given["stdin_filename"],
        diff=given["diff"],
        add_ignore=given["add_ignore"],
        baseline=given["baseline"],
        write_baseline=given["write_baseline"],
        output_file=given["output_file"],
        statistics=given["statistics"],
        exit_zero=given["exit_zero"],
        show_settings=given["show_settings"],
        show_files=given["show_files"],
        use_cache=not given["no_cache"],
        jobs=given["jobs"] or _available_cores(),
        use_scout=not given["no_scout"],
        verbose=given["verbose"],
        quiet=given["quiet"],
        colour=given["colour"],
    )


def _options(given: dict[str, Any]) -> Options:
    return Options(
        origin="the command line",
        select=given["select"] or None,
        ignore=given["ignore"],
        extend_select=given["extend_select"],
        per_file_ignores=given["per_file_ignores"],
        exclude=given["exclude"] or None,
        extend_exclude=given["extend_exclude"],
        force_exclude=given["force_exclude"],
        fail_on=Severity(given["fail_on"]) if given["fail_on"] else None,
        cache_dir=given["cache_dir"],
        output_format=given["output_format"],
        fix=given["fix"],
        unsafe_fixes=given["unsafe_fixes"],
    )


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
