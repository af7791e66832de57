"""Baselines: what is recorded, what counts as new, and what is stale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainlint.baseline import Baseline, BaselineError, StaleEntry, write_baseline
from trainlint.finding import Finding, Severity

ACTIVE = {"zero-grad-missing", "eval-missing"}


def finding(
    path: Path, line: int, rule: str = "zero-grad-missing", cell: int | None = None
) -> Finding:
    return Finding(
        path=str(path),
        line=line,
        column=1,
        end_line=line,
        end_column=2,
        code="TLG001",
        rule=rule,
        severity=Severity.ERROR,
        message="",
        help="",
        fix=None,
        statement_line=line,
        statement_end_line=line,
        cell=cell,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").touch()
    (tmp_path / "b.py").touch()
    return tmp_path


def test_the_file_is_sorted_and_counts_by_path_and_rule(project: Path) -> None:
    findings = [
        finding(project / "src" / "a.py", 9),
        finding(project / "src" / "a.py", 3),
        finding(project / "src" / "a.py", 3, "eval-missing"),
        finding(project / "b.py", 1),
    ]
    assert write_baseline(project / "baseline.json", findings) == 4
    assert (project / "baseline.json").read_text(encoding="utf-8") == (
        """\
{
  "findings": {
    "b.py": {
      "zero-grad-missing": 1
    },
    "src/a.py": {
      "eval-missing": 1,
      "zero-grad-missing": 2
    }
  },
  "version": 1
}
"""
    )


def test_the_same_findings_are_known_wherever_their_lines_are(project: Path) -> None:
    file = project / "baseline.json"
    write_baseline(file, [finding(project / "b.py", 1), finding(project / "b.py", 5)])
    result = Baseline.read(file).apply(
        [finding(project / "b.py", 31), finding(project / "b.py", 77)], [], ACTIVE
    )
    assert (result.findings, result.known_count, result.stale) == ([], 2, [])


def test_beyond_the_count_the_last_ones_are_new(project: Path) -> None:
    file = project / "baseline.json"
    write_baseline(file, [finding(project / "b.py", 1)])
    found = [
        finding(project / "b.py", 50),
        finding(project / "b.py", 2),
        finding(project / "b.py", 9),
        finding(project / "b.py", 9),
        finding(project / "b.py", 1, "eval-missing"),
        finding(project / "src" / "a.py", 1),
    ]
    result = Baseline.read(file).apply(found, [], ACTIVE)
    assert result.findings == [found[0], *found[2:]]
    assert result.known_count == 1


def test_notebook_cells_count_in_their_order(project: Path) -> None:
    file = project / "baseline.json"
    write_baseline(file, [finding(project / "n.ipynb", 9, cell=1)])
    found = [finding(project / "n.ipynb", 9, cell=1), finding(project / "n.ipynb", 2, cell=4)]
    assert Baseline.read(file).apply(found, [], ACTIVE).findings == [found[1]]


def test_it_holds_from_every_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    write_baseline(Path("baseline.json"), [finding(Path("src/a.py"), 1)])
    monkeypatch.chdir(project / "src")
    result = Baseline.read(Path("../baseline.json")).apply([finding(Path("a.py"), 2)], [], ACTIVE)
    assert result.known_count == 1


def test_stale_entries(project: Path) -> None:
    file = project / "baseline.json"
    recorded = [
        finding(project / "b.py", 1),
        finding(project / "b.py", 2),
        finding(project / "b.py", 2, "rule-that-does-not-run"),
        finding(project / "src" / "a.py", 1),
        finding(project / "gone.py", 1),
    ]
    write_baseline(file, recorded)
    result = Baseline.read(file).apply([recorded[0]], [str(project / "b.py")], ACTIVE)
    assert result.stale == [
        StaleEntry("b.py", "zero-grad-missing", recorded=2, found=1),
        StaleEntry("gone.py", "zero-grad-missing", recorded=1, found=0),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("\xff", "is not valid JSON"),
        ("[]", "is not a baseline"),
        ('{"findings": 3, "version": 1}', "is not a baseline"),
        ('{"findings": {}}', "has version None"),
        ('{"findings": {}, "version": 9}', "has version 9"),
        ('{"findings": {"a.py": 1}, "version": 1}', "no valid counts for 'a.py'"),
        ('{"findings": {"a.py": {"r": "1"}}, "version": 1}', "no valid counts for 'a.py'"),
        ('{"findings": {"a.py": {"r": -1}}, "version": 1}', "no valid counts for 'a.py'"),
    ],
)
def test_faulty_files_are_one_line_for_the_user(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(content, encoding="latin-1")
    with pytest.raises(BaselineError, match=message) as caught:
        Baseline.read(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"no such file.*make one with --write-baseline"):
        Baseline.read(tmp_path / "none.json")


def test_unwritable_file(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="cannot write baseline"):
        write_baseline(tmp_path / "none" / "baseline.json", [])


def test_an_empty_baseline_hides_nothing(project: Path) -> None:
    file = project / "baseline.json"
    assert write_baseline(file, []) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["findings"] == {}
    found = [finding(project / "b.py", 1)]
    assert Baseline.read(file).apply(found, [], ACTIVE).findings == found
