"""``trainlint probe``: the command line of the probe."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from trainlint.cli.faults import UsageFault
from trainlint.runtime.judge import judge
from trainlint.runtime.launch.launcher import Launcher, ProbeSettings
from trainlint.runtime.launch.processes import ChildStartError
from trainlint.runtime.report.result import Report
from trainlint.runtime.report.terminal import print_report
from trainlint.runtime.static import CheckFailedError, compare

BROKEN = 2
# What each phase is called while it runs.
PHASES = {
    "observe": "observing",
    "fixed": "one batch again",
    "zeroed": "inputs zeroed",
    "replay": "replaying",
}


class ProbeProgress:
    """One bar for the phase that is running: phase, step and loss."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[said]}", table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            expand=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None, said="")

    def __enter__(self) -> ProbeProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, phase: str, said: str) -> None:
        """Show what a child last said: step, total and loss; the bar swings until it speaks."""
        step, total, loss = (*said.split(), "", "", "")[:3]
        self._bar.update(
            self._task,
            description=PHASES[phase],
            completed=int(step or 0),
            total=int(total) if total else None,
            said=f"step {step}/{total}{loss and f'  loss {loss}'}" if total else "",
        )


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="TARGET is a module, as for python -m.")
@click.option("--steps", default=10, show_default=True, help="Optimizer steps to observe.")
@click.option("--budget", default=120.0, show_default=True, help="Seconds for all phases.")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds without a step: hung.")
@click.option("--no-fixed-batch", is_flag=True, help="Skip the fixed-batch phase and its control.")
@click.option("--no-extra", is_flag=True, help="Skip the extra forwards on a copy of the model.")
@click.option("--no-replay", is_flag=True, help="Do not replay a step that was not finite.")
@click.option("--keep-compile", is_flag=True, help="Keep torch.compile; only step-level checks.")
@click.option("--show-output", is_flag=True, help="Show the script's own output.")
@click.option("--check", is_flag=True, help="Also run the static rules, and compare.")
@click.option("--strict", is_flag=True, help="Exit with 1 on a WARN too.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the report on standard output.",
)
@click.option("--html", type=click.Path(dir_okay=False), help="Also write an HTML report here.")
@click.option("--folder", type=click.Path(file_okay=False), help="Keep the run's files here.")
@click.option("--verbose", is_flag=True, help="Name every check that could not look.")
@click.argument("target")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def probe(
    target: str,
    args: tuple[str, ...],
    module: bool,
    steps: int,
    budget: float,
    timeout: float,
    no_fixed_batch: bool,
    no_extra: bool,
    no_replay: bool,
    keep_compile: bool,
    show_output: bool,
    check: bool,
    strict: bool,
    output_format: str,
    html: str | None,
    folder: str | None,
    verbose: bool,
) -> None:
    """Run TARGET for a few steps, unmodified, and judge how it trains.

    Options come before TARGET; what follows it is the script's own (a first -- is dropped). Exit
    code: 0 ready, 1 a FAIL was found, 2 the script or the probe could not run.
    """
    if importlib.util.find_spec("torch") is None:
        raise UsageFault("the probe needs torch: pip install 'trainlint[probe]'")
    if not module and not os.path.isfile(target):
        raise UsageFault(f"no such script: {target}")
    settings = ProbeSettings(
        target=target,
        args=list(args[1:] if args[:1] == ("--",) else args),
        module=module,
        steps=steps,
        budget=budget,
        timeout=timeout,
        fixed=not no_fixed_batch,
        extra=not no_extra,
        replay=not no_replay,
        keep_compile=keep_compile,
        show_output=show_output,
        folder=folder,
    )
    if html is not None:
        _expect_writable(Path(html))
    report = _run(settings)
    if settings.rank != 0:
        # Rank 0 speaks for all; a failing rank would have it ended by torchrun before it does.
        return
    if check:
        _compare(report, settings)
    _show(report, output_format, html, verbose)
    sys.exit(report.exit_code(strict))


def _expect_writable(target: Path) -> None:
    """Say at once, not after minutes, that the report has no place to go."""
    home = target.resolve().parent
    if not home.is_dir() or not os.access(home, os.W_OK):
        raise UsageFault(f"cannot write {target}: {home} is no folder that can be written to")


def _run(settings: ProbeSettings) -> Report:
    try:
        with ProbeProgress(Console(stderr=True, quiet=settings.rank != 0)) as progress:
            evidence = _launcher(settings, progress).run()
    except ChildStartError as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(BROKEN)
    return Report(evidence, judge(evidence))


def _launcher(settings: ProbeSettings, progress: ProbeProgress) -> Launcher:
    try:
        return Launcher(settings, progress, click.get_current_context().obj)
    except OSError as problem:
        where = settings.folder or "a temporary folder"
        raise UsageFault(f"cannot make {where} for the run's files: {problem.strerror}") from None


def _compare(report: Report, settings: ProbeSettings) -> None:
    try:
        report.static = compare(settings.target, settings.module, report.evidence, report.verdict)
    except CheckFailedError as problem:
        report.evidence.skipped["static rules"] = str(problem)


def _show(report: Report, output_format: str, html: str | None, verbose: bool) -> None:
    if output_format == "json":
        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        print_report(report, Console(soft_wrap=not sys.stdout.isatty()), verbose)
    if html is not None:
        from trainlint.runtime.report.html import render

        Path(html).write_text(render(report), encoding="utf-8")
