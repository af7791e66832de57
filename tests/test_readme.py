"""The README's tables of rules and recipes and its example are what the program says.

``python -m tests.test_readme`` writes both anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from trainlint.finding import Applicability
from trainlint.recipes import installed_recipes
from trainlint.registry import all_rules

from .reference_trainers.measured import rows_in
from .reference_trainers.seed_map import README as TRAINERS_README
from .reference_trainers.seed_map import sections_of

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
SHOWN = ("--select", "softmax-before-cross-entropy,eval-missing")
REPAIR = "run python -m tests.test_readme"
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


def recipe_table() -> str:
    """One row for each recipe: the index and the measurements of the trainers' own README."""
    text = TRAINERS_README.read_text("utf-8")
    seconds = {row.recipe: row.seconds for row in rows_in(text) if not row.change}
    rows = ["| recipe | file | seed section | data | target | time |", "|---|---|---|---|---|---|"]
    for recipe in installed_recipes():
        index = re.search(
            rf"^\|.*\]\({recipe.file}\) \|[^|]*\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE
        )
        assert index is not None, recipe.file
        time = f"{seconds[recipe.file]} s" if recipe.file in seconds else "not measured"
        link = f"[{recipe.file}](reference_trainers/{recipe.file})"
        cells = [f"`{recipe.name}`", link, "; ".join(sections_of(recipe.file))]
        rows.append(f"| {' | '.join([*cells, index[1].strip(), index[2].strip(), time])} |")
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
    assert between(README.read_text("utf-8"), "rules")[1] == rule_table(), REPAIR


def test_recipes_are_listed_as_they_are() -> None:
    assert between(README.read_text("utf-8"), "recipes")[1] == recipe_table(), REPAIR


def test_example_is_real_output() -> None:
    assert between(README.read_text("utf-8"), "example")[1] == example(), REPAIR


if __name__ == "__main__":
    written = README.read_text("utf-8")
    generated = {"rules": rule_table(), "recipes": recipe_table(), "example": example()}
    for name, text in generated.items():
        start, end = between(written, name).span(1)
        written = written[:start] + text + written[end:]
    README.write_text(written, "utf-8")
