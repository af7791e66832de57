"""How often each rule fired: what ``--statistics`` prints in place of the findings."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

from trainlint.finding import Finding, Severity
from trainlint.output import colours
from trainlint.output.context import OutputContext
from trainlint.output.json_format import VERSION
from trainlint.output.wording import file_error, summary


@dataclass(frozen=True, slots=True)
class RuleCount:
    """The findings of one rule; ``severity`` is the most serious among them."""

    code: str
    rule: str
    severity: Severity
    count: int
    fixable: int


def rule_counts(context: OutputContext) -> list[RuleCount]:
    """One entry a rule that fired, the most frequent first, then by code."""
    groups: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in context.findings:
        groups[finding.code].append(finding)
    counts = [
        RuleCount(
            code,
            group[0].rule,
            max((finding.severity for finding in group), key=lambda severity: severity.rank),
            len(group),
            sum(map(context.is_fixable, group)),
        )
        for code, group in groups.items()
    ]
    return sorted(counts, key=lambda each: (-each.count, each.code))


def render_text(context: OutputContext) -> str:
    """A table: count, code, how many are fixable, name; then the summary."""
    counts = rule_counts(context)
    width = max((len(str(each.count)) for each in counts), default=0)
    lines = [_row(each, width, context.colour) for each in counts]
    lines += [file_error(error, context.colour) for error in context.errors]
    if not context.quiet:
        lines.append(summary(context))
    return "".join(f"{line}\n" for line in lines)


def _row(each: RuleCount, width: int, colour: bool) -> str:
    mark = {0: "[ ]", each.count: "[*]"}.get(each.fixable, "[~]")
    code = colours.painted(each.code, colours.of_severity(each.severity), colour)
    return f"{each.count:>{width}}  {code}  {mark}  {each.rule}"


def render_json(context: OutputContext) -> str:
    """``{"version": 1, "statistics": [{code, rule, severity, count, fixable}, ...], ...}``."""
    content = {
        "version": VERSION,
        "statistics": [
            {
                "code": each.code,
                "rule": each.rule,
                "severity": each.severity.value,
                "count": each.count,
                "fixable": each.fixable,
            }
            for each in rule_counts(context)
        ],
        "errors": [{"path": error.path, "message": error.message} for error in context.errors],
    }
    return json.dumps(content, indent=2) + "\n"
