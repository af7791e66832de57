"""Every rule against its documentation's examples and its annotated programs.

A program stands in ``tests/rules/<family>/<rule_name>.py``, or as a folder of that name when it
needs several files, each of which is then checked as one project. ``# expect: rule-name`` at the
end of a line says that the rule reports that line; on every other line it must be silent.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import check_folder
from trainlint.registry import all_rules
from trainlint.rule import Rule

HERE = Path(__file__).parent
_EXPECTATION = re.compile(r"#\s*expect:\s*([a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")
_CODE_BLOCK = re.compile(
    r"^## (Example|Use instead)\n+```python\n(.*?)^```", re.DOTALL | re.MULTILINE
)
_PROGRAMS = sorted(
    path
    for family in HERE.iterdir()
    if family.is_dir() and family.name != "__pycache__"
    for path in family.iterdir()
    if path.name not in ("__pycache__", "__init__.py")
)


def expected_lines(text: str, rule: str) -> list[int]:
    """The lines that carry an expectation of this rule."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        for match in _EXPECTATION.finditer(line)
        if rule in re.split(r"\s*,\s*", match[1])
    ]


@pytest.mark.parametrize("program", _PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_program_is_flagged_exactly_where_annotated(program: Path, tmp_path: Path) -> None:
    rule = program.stem.replace("_", "-")
    root = tmp_path / "project"
    if program.is_dir():
        shutil.copytree(program, root)
    else:
        root.mkdir()
        shutil.copy(program, root)
    for path, findings in check_folder(root, [rule]).items():
        reported = [finding.line for finding in findings]
        assert reported == expected_lines(path.read_text("utf-8"), rule), path.name


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_documentation_examples_are_faulty_and_right(rule: Rule, tmp_path: Path) -> None:
    blocks = dict(_CODE_BLOCK.findall(rule.documentation()))
    if rule.family == "suppressions":
        pytest.skip("reported after all other rules, see tests of suppressions")
    assert set(blocks) == {"Example", "Use instead"}, "document one faulty and one right example"
    for title, code in blocks.items():
        folder = tmp_path / title.replace(" ", "_")
        folder.mkdir()
        (folder / "train.py").write_text(code, "utf-8")
        findings = [item for found in check_folder(folder, [rule.name]).values() for item in found]
        assert bool(findings) is (title == "Example"), f"{title}: {findings}"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_every_rule_has_an_annotated_program(rule: Rule) -> None:
    name = rule.name.replace("-", "_")
    found = [path for path in _PROGRAMS if path.stem == name and path.parent.name == rule.family]
    assert found or rule.family == "suppressions"
