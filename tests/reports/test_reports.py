"""Real bug reports, each retold as a small program of our own: exactly what each should give.

``tests/reports/<id>_<what>.py``, or a folder of that name for several files. Annotated as the
programs of the rules are, with all rules running; a line ``# never: rule-name`` anywhere names a
rule that the program was once wrongly accused by.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import check_folder
from tests.rules.test_rules import expected_lines
from trainlint.finding import Severity
from trainlint.registry import all_rules

HERE = Path(__file__).parent
_PROGRAMS = sorted(path for path in HERE.iterdir() if re.match(r"R\d{3}_", path.name))


@pytest.mark.parametrize("program", _PROGRAMS, ids=lambda path: path.stem)
def test_report_gives_exactly_the_expected_findings(program: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    if program.is_dir():
        shutil.copytree(program, root)
    else:
        root.mkdir()
        shutil.copy(program, root)
    for path, findings in check_folder(root, []).items():
        serious = [item for item in findings if item.severity is not Severity.INFO]
        text = path.read_text("utf-8")
        for rule in all_rules():
            reported = [item.line for item in serious if item.rule == rule.name]
            named = [item.line for item in findings if item.rule == rule.name]
            expected = expected_lines(text, rule.name)
            assert expected in (reported, named), f"{path.name}: {rule.name} at {named}"
