"""Repairs, tried on the documentation's faulty examples: they mend, and mending is done at once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.rules.test_rules import _CODE_BLOCK
from trainlint.analysis import Project, SourceFile
from trainlint.engine import check_file
from trainlint.fixing import fix_source
from trainlint.registry import all_rules
from trainlint.rule import Report, Rule


def reports_on(code: str, rule: Rule, folder: Path) -> list[Report]:
    """What the rule reports in a project of this one file."""
    path = folder / "train.py"
    path.write_text(code, "utf-8")
    source = SourceFile.from_text(path, code)
    return check_file(source, Project(folder), [rule]).reports


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_repaired_example_is_right_and_stays_as_it_is(rule: Rule, tmp_path: Path) -> None:
    example = dict(_CODE_BLOCK.findall(rule.documentation())).get("Example", "")
    reports = reports_on(example, rule, tmp_path) if rule.family != "suppressions" else []
    if not any(report.repair is not None for report in reports):
        assert rule.fix_safety is None or rule.family == "suppressions"
        pytest.skip("reported without a repair")

    assert rule.fix_safety is not None, "say in `fix_safety` that there are repairs"
    fixed = fix_source(example, reports, unsafe=True)
    assert fixed.applied
    ast.parse(fixed.text)
    again = reports_on(fixed.text, rule, tmp_path)
    assert not again, fixed.text
    assert fix_source(fixed.text, again, unsafe=True).text == fixed.text
