"""One line a finding: ``path:line:column: CODE [*] rule-name message``."""

from __future__ import annotations

from trainlint.finding import Finding
from trainlint.output import colours
from trainlint.output.context import OutputContext
from trainlint.output.wording import file_error, fix_mark, place, summary


def render(context: OutputContext) -> str:
    """All findings, then the files that could not be checked, then the summary."""
    lines = [_finding(finding, context.colour) for finding in context.findings]
    lines += [file_error(error, context.colour) for error in context.errors]
    if not context.quiet:
        lines.append(summary(context))
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, colour: bool) -> str:
    words = [
        (f"{place(finding)}:", colours.BOLD),
        (finding.code, colours.of_severity(finding.severity)),
        (fix_mark(finding), colours.of_fix(finding.fix)),
        (finding.rule, colours.BOLD),
    ]
    shown = [colours.painted(text, colour_of, colour) for text, colour_of in words if text]
    return " ".join([*shown, finding.message])
