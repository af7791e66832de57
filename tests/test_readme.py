"""The README's table of rules and its example are what the program says.

``python -m tests.test_readme`` writes both anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from trainlint.finding import Applicability
from trainlint.registry import all_rules

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
SHOWN = ("--select", "softmax-before-cross-entropy,eval-missing")
_FIXES = {None: "", Applicability.SAFE: "safe", Applicability.UNSAFE: "unsafe"}


def rule_table() -> str:
    """One row for each rule, by family."""
    rows = ["| code | rule | severity | fix | reports |", "|---|---|---|---|---|"]
    for rule in all_rules():
        severity = rule.severity.value + (" (preview)" if rule.preview else "")
        summary = rule.summary().replace("|", r"\|")
        rows.append(
            f"| {rule.code} | `{rule.name}` | {severity} | {_FIXES[rule.fix_safety]} | {summary} |"
        )
    return "\n".join(rows)


def example() -> str:
    """What a check of the demo script prints."""
    done = subprocess.run(
        [sys.executable, "-m", "trainlint", "check", "--no-cache", *SHOWN, "tests/demo/train.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    prompt = "$ trainlint check tests/demo/train.py  # two of its six findings"
    return f"```console\n{prompt}\n{done.stdout.rstrip()}\n```"


def between(text: str, name: str) -> re.Match[str]:
    """The part of the README that is generated under a name."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    assert found is not None, name
    return found


def test_rules_are_listed_as_they_are() -> None:
    assert between(README.read_text("utf-8"), "rules")[1] == rule_table()


def test_example_is_real_output() -> None:
    assert between(README.read_text("utf-8"), "example")[1] == example()


if __name__ == "__main__":
    written = README.read_text("utf-8")
    for name, text in (("rules", rule_table()), ("example", example())):
        start, end = between(written, name).span(1)
        written = written[:start] + text + written[end:]
    README.write_text(written, "utf-8")
