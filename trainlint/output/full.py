"""The format for people: each finding with its code, the reason and the remedy."""

from __future__ import annotations

from trainlint.finding import Finding
from trainlint.output import colours
from trainlint.output.code_frame import code_frame
from trainlint.output.context import OutputContext
from trainlint.output.wording import file_error, fix_mark, fix_option, place, summary


def render(context: OutputContext) -> str:
    """All findings, then the files that could not be checked, then the summary."""
    blocks = [_finding(finding, context) for finding in context.findings]
    if context.errors:
        blocks.append("\n".join(file_error(error, context.colour) for error in context.errors))
    if not context.quiet:
        blocks.append(summary(context))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _finding(finding: Finding, context: OutputContext) -> str:
    lines = [_headline(finding, context)]
    arrow = colours.painted("-->", colours.BLUE, context.colour)
    lines.append(f"  {arrow} {place(finding)}")
    source = context.source_lines(finding.path, finding.cell)
    lines += code_frame(finding, source, context.colour)
    if finding.help:
        lines.append(f"{colours.painted('help:', colours.CYAN, context.colour)} {finding.help}")
    if finding.fix is not None:
        label = colours.painted("fix:", colours.CYAN, context.colour)
        lines.append(f"{label} {finding.fix.title} ({fix_option(finding)})")
    return "\n".join(lines)


def _headline(finding: Finding, context: OutputContext) -> str:
    words = [
        (f"{finding.severity.value}:", colours.of_severity(finding.severity)),
        (finding.code, colours.BOLD),
        (fix_mark(finding), colours.of_fix(finding.fix)),
        (f"{finding.rule}:", colours.BOLD),
    ]
    shown = [colours.painted(text, colour, context.colour) for text, colour in words if text]
    return " ".join([*shown, finding.message])
