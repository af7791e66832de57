"""The verdict first, then findings with evidence, line and fix, then what was not checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.text import Text

from trainlint.runtime.findings import Finding, Level, NotChecked
from trainlint.runtime.places import short_path
from trainlint.runtime.report.memory import memory_line
from trainlint.runtime.report.result import Report
from trainlint.runtime.static import StaticFinding
from trainlint.runtime.trace import Place, Trace

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {Level.FAIL: "bold red", Level.WARN: "bold yellow", Level.NOTE: "cyan"}
_HEADLINES = {
    "ready to train": "bold green",
    "fix before training": "bold red",
}
TRACEBACK_LINES = 12


def print_report(report: Report, console: Console, verbose: bool = False) -> None:
    """Print the whole report."""
    if report.broken:
        _print_broken(report, console)
    style = _HEADLINES.get(report.headline, "bold yellow")
    console.print(Text(report.headline, style=style), _summary(report))
    for finding in report.findings:
        _print_finding(finding, console)
    if line := memory_line(report.evidence.trace.memory):
        console.print()
        console.print(Text("memory:", style="bold"), line, highlight=False)
    _print_static(report.static, console)
    entries = report.verdict.not_checked
    if not report.evidence.trace.steps and not verbose:
        # The one reason that matters; --verbose has the others.
        entries = [NotChecked("", report.evidence.no_step) for _ in entries]
    _print_not_checked(entries, report.evidence.skipped, console, verbose)
    _print_notes(report.evidence.trace, console)
    _print_files(report.evidence.trace, console)


def _summary(report: Report) -> Text:
    trace = report.evidence.trace
    parts = [f"{len(trace.steps)} steps observed"]
    if report.evidence.fixed is not None:
        parts.append(f"{len(report.evidence.fixed.steps)} on one fixed batch")
    parts.append(f"{len(report.verdict.passed)} checks passed")
    parts.append(f"{report.evidence.seconds:.1f} s")
    return Text(f"({', '.join(parts)})", style="dim")


def _print_broken(report: Report, console: Console) -> None:
    _, ending = report.evidence.ending
    first = report.broken.splitlines()[0]
    console.print(Text(f"the script did not finish: {first}", style="bold red"))
    if ending.place is not None:
        _print_place(ending.place, console)
    if ending.traceback:
        lines = ending.traceback.rstrip().splitlines()[-TRACEBACK_LINES:]
        console.print(Text("\n".join(f"  {line}" for line in lines), style="dim"))


def _print_place(place: Place, console: Console) -> None:
    where = Text(f"  {short_path(place.file)}:{place.line}", style="blue")
    console.print(where, Text(place.text), soft_wrap=True)


def _print_finding(finding: Finding, console: Console) -> None:
    console.print()
    head = Text(finding.level.value.upper(), style=_STYLES[finding.level])
    console.print(head, Text(finding.title, style="bold"), Text(f"[{finding.rule}]", style="dim"))
    if finding.place is not None:
        _print_place(finding.place, console)
    console.print(f"  seen: {escape(finding.evidence)}", highlight=False)
    console.print(f"  fix:  {escape(finding.fix)}", highlight=False)


def _print_static(found: list[StaticFinding], console: Console) -> None:
    if not found:
        return
    console.print()
    console.print(Text("static findings", style="bold"))
    for one in found:
        where = f"{one.path}:{one.line}"
        console.print(
            f"  {one.state}: {escape(where)} {one.rule}: {escape(one.message)}", highlight=False
        )


def _print_not_checked(
    entries: list[NotChecked], skipped: dict[str, str], console: Console, verbose: bool
) -> None:
    by_reason: dict[str, list[str]] = {}
    for entry in entries:
        by_reason.setdefault(entry.reason, []).append(entry.rule)
    if not by_reason and not skipped:
        return
    console.print()
    console.print(Text("not checked", style="bold"))
    for phase, reason in skipped.items():
        console.print(f"  {phase}: {escape(reason)}", highlight=False, style="dim")
    for reason, rules in by_reason.items():
        names = ", ".join(rules) if verbose or len(rules) < 4 else f"{len(rules)} checks"
        console.print(f"  {escape(names)}: {escape(reason)}", highlight=False, style="dim")


def _print_notes(trace: Trace, console: Console) -> None:
    if trace.notes or trace.instrument_errors:
        console.print()
    for note in trace.notes:
        console.print(Text(f"note: {note}", style="dim"))
    for problem in trace.instrument_errors:
        # A measurement that failed leaves checks without what they look at.
        console.print(Text(f"a measurement failed: {problem}", style="yellow"))


def _print_files(trace: Trace, console: Console) -> None:
    if trace.redirected:
        console.print()
        names = ", ".join(trace.redirected[:3])
        console.print(
            f"kept away from your files (--folder DIR saves it): {escape(names)}", style="dim"
        )
    if trace.created:
        names = ", ".join(trace.created[:3])
        console.print(f"the script created new files: {escape(names)}", style="dim")
