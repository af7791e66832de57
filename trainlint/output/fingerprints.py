"""A name for each finding that stays the same while lines above it come and go."""

from __future__ import annotations

import hashlib
from collections import Counter

from trainlint.finding import Finding
from trainlint.output.context import OutputContext
from trainlint.output.wording import repository_path


def fingerprints(context: OutputContext) -> list[str]:
    """One hexadecimal name a finding, in their order; no two are equal.

    It is made of the file, the rule and the text of the line, without the line's number and
    indentation; equal ones in a file are numbered.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    names = []
    for finding in context.findings:
        identity = (repository_path(finding.path), finding.rule, _line_text(finding, context))
        number = seen[identity]
        seen[identity] += 1
        content = "\0".join([*identity, str(number)])
        names.append(hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:40])
    return names


def _line_text(finding: Finding, context: OutputContext) -> str:
    lines = context.source_lines(finding.path, finding.cell)
    return lines[finding.line - 1].strip() if finding.line <= len(lines) else ""
