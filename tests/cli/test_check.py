"""What ``trainlint check`` prints and with which code it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Check
from tests.command_line import concise

Write = Callable[..., Path]

ALL_CALLS = "faulty()\ndoubtful()\ndoubtful(1)\nslow()\nyoung()\n"


def test_nothing_found_is_0(check: Check, write: Write) -> None:
    write("fine.py", "print(1)\n")
    ended = check()
    assert (ended.code, ended.stdout) == (0, "All checks passed!\n")


def test_findings_are_1_and_sorted_by_path_and_line(check: Check, write: Write) -> None:
    write("b.py", "faulty()\n")
    write("a/z.py", "\nfaulty()\nfaulty()\n")
    ended = check()
    assert ended.code == 1
    assert concise(ended) == ["a/z.py:2:1: DEM101", "a/z.py:3:1: DEM101", "b.py:1:1: DEM101"]


def test_a_missing_path_is_2_and_the_others_are_checked(check: Check, write: Write) -> None:
    write("a.py", "faulty()\n")
    ended = check("gone.py", "a.py")
    assert ended.code == 2
    assert "gone.py: cannot read: No such file or directory" in ended.stdout
    assert concise(ended)[0] == "a.py:1:1: DEM101"


def test_a_file_that_cannot_be_parsed_is_2(check: Check, write: Write) -> None:
    write("a.py", "faulty(\n")
    write("b.py", "faulty()\n")
    ended = check()
    assert ended.code == 2
    assert "a.py: cannot parse at line 1" in ended.stdout
    assert "b.py:1:1: DEM101" in ended.stdout


def test_no_python_file_is_0_and_silent(check: Check, write: Write) -> None:
    write("notes.txt", "faulty()\n")
    ended = check()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_no_python_file_is_still_a_document_for_programs(check: Check) -> None:
    ended = check("--output-format", "json")
    assert (ended.code, json.loads(ended.stdout)["findings"]) == (0, [])


@pytest.mark.parametrize(
    ("fail_on", "calls", "code"),
    [
        ("error", "doubtful()", 0),
        ("error", "faulty()", 1),
        ("warning", "doubtful()", 1),
        ("warning", "doubtful(1)", 0),
        ("info", "doubtful(1)", 1),
    ],
)
def test_fail_on(check: Check, write: Write, fail_on: str, calls: str, code: int) -> None:
    write("a.py", calls + "\n")
    ended = check("--select", "DEM", "--fail-on", fail_on)
    assert ended.code == code
    assert concise(ended)


def test_exit_zero(check: Check, write: Write) -> None:
    write("a.py", "faulty()\n")
    assert check("--exit-zero").code == 0


def test_exit_zero_does_not_hide_a_file_that_could_not_be_checked(
    check: Check, write: Write
) -> None:
    write("a.py", "faulty(\n")
    assert check("--exit-zero").code == 2


def test_default_selection_has_no_preview_rules_and_no_hints(check: Check, write: Write) -> None:
    write("a.py", ALL_CALLS)
    assert concise(check()) == ["a.py:1:1: DEM101", "a.py:2:1: DEM102"]


@pytest.mark.parametrize("selector", ["DEM", "demo_rules", "demo-rules"])
def test_a_selected_family_has_its_hints_but_not_its_preview_rules(
    check: Check, write: Write, selector: str
) -> None:
    write("a.py", ALL_CALLS)
    lines = [line.split(":")[1] for line in concise(check("--select", selector))]
    assert lines == ["1", "2", "3", "4"]


@pytest.mark.parametrize("selector", ["ALL", "demo-young,DEM", "DEM301,DEM"])
def test_preview_rules_run_by_name_by_code_and_by_all(
    check: Check, write: Write, selector: str
) -> None:
    write("a.py", ALL_CALLS)
    assert "a.py:5:1: DEM301" in concise(check("--select", selector))


def test_an_unknown_rule_is_2_and_the_nearest_is_named(check: Check) -> None:
    ended = check("--select", "demo-falty")
    assert ended.code == 2
    assert "unknown rule 'demo-falty'; did you mean 'demo-faulty'?" in ended.stderr


def test_per_file_ignores(check: Check, write: Write) -> None:
    write("a.py", "faulty()\n")
    write("tests/test_a.py", "faulty()\ndoubtful()\n")
    ended = check("--per-file-ignores", "tests/*:DEM101,a.py:ALL")
    assert concise(ended) == ["tests/test_a.py:2:1: DEM102"]


def test_per_file_ignores_of_the_wrong_form(check: Check) -> None:
    ended = check("--per-file-ignores", "DEM101")
    assert ended.code == 2
    assert "not of the form PATTERN:RULE" in ended.stderr


def test_statistics(check: Check, write: Write) -> None:
    write("a.py", "faulty()\nfaulty()\n")
    ended = check("--statistics")
    assert ended.stdout.splitlines()[0].split() == ["2", "DEM101", "[*]", "demo-faulty"]
    assert ended.code == 1


def test_statistics_as_json(check: Check, write: Write) -> None:
    write("a.py", "faulty()\n")
    document = json.loads(check("--statistics", "--output-format", "json").stdout)
    assert document["statistics"][0]["count"] == 1


def test_output_file(check: Check, write: Write, tmp_path: Path) -> None:
    write("a.py", "faulty()\n")
    ended = check("--output-format", "json", "-o", "report.json")
    assert (ended.code, ended.stdout) == (1, "")
    assert json.loads((tmp_path / "report.json").read_text())["findings"][0]["line"] == 1


def test_an_output_file_that_cannot_be_written_is_2(check: Check) -> None:
    ended = check("-o", "missing/report.txt", "--output-format", "json")
    assert ended.code == 2
    assert "cannot write missing/report.txt: No such file or directory" in ended.stderr


def test_quiet_has_findings_only(check: Check, write: Write) -> None:
    write("a.py", "faulty()\n")
    ended = check("-q")
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""


def test_verbose_talks_about_the_run_on_stderr(check: Check, write: Write) -> None:
    write("trainlint.toml", "")
    write("a.py", "print(1)\n")
    ended = check("-v")
    assert "settings: trainlint.toml" in ended.stderr
    assert "checked 1 files" in ended.stderr


@pytest.mark.parametrize(
    ("choice", "variable", "coloured"),
    [
        ("auto", None, False),
        ("always", None, True),
        ("always", "NO_COLOR", True),
        ("auto", "FORCE_COLOR", True),
        ("never", "FORCE_COLOR", False),
    ],
)
def test_colour(
    check: Check,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    variable: str | None,
    coloured: bool,
) -> None:
    write("a.py", "faulty()\n")
    if variable:
        monkeypatch.setenv(variable, "1")
    assert ("\x1b[" in check("--color", choice).stdout) is coloured


def test_show_files(check: Check, write: Write, tmp_path: Path) -> None:
    write("b.py")
    write("a.ipynb")
    write("c.pyi")
    ended = check("--show-files")
    assert ended.stdout.splitlines() == [str(tmp_path / "a.ipynb"), str(tmp_path / "b.py")]


def test_show_settings(check: Check, write: Write) -> None:
    write("trainlint.toml", 'select = ["demo-slow"]\nfail-on = "info"\n')
    ended = check("--show-settings")
    assert "# from: trainlint.toml" in ended.stdout
    assert '"DEM201 demo-slow"' in ended.stdout
    assert 'fail-on = "info"' in ended.stdout


def test_paths_in_findings_start_at_the_working_directory(
    check: Check, write: Write, tmp_path: Path
) -> None:
    write("src/a.py", "faulty()\n")
    assert concise(check(str(tmp_path / "src"))) == ["src/a.py:1:1: DEM101"]


def test_a_suppressed_finding_is_none(check: Check, write: Write) -> None:
    write("a.py", "faulty()  # trainlint: ignore[demo-faulty]\nfaulty()  # noqa: DEM101\n")
    assert check().code == 0


def test_the_answer_without_scouts_is_the_same(check: Check, write: Write) -> None:
    write("a.py", ALL_CALLS)
    write("b.py", "print(1)\n")
    assert check("--no-scout").stdout == check().stdout


def test_a_mistake_of_ours_costs_one_file_and_says_so(check: Check, write: Write) -> None:
    write("a.py", "mistake()\n")
    write("b.py", "faulty()\n")
    ended = check("--select", "ALL")
    assert ended.code == 2
    assert "a.py: trainlint failed on this file: ValueError: not expected\n" in ended.stdout
    assert "b.py:1:1: DEM101" in ended.stdout
    assert "This is a mistake in trainlint" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_verbose_shows_the_traceback_of_our_mistake(check: Check, write: Write) -> None:
    write("a.py", "mistake()\n")
    assert "Traceback" in check("--select", "ALL", "-v").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "a.py"], "together with other paths"),
        (["--stdin-filename", "a.py", "."], "needs - as the only path"),
        (["--write-baseline"], "needs --baseline FILE"),
        (["--add-ignore", "--fix"], "cannot be combined"),
        (["--output-format", "xml"], "xml"),
        (["--jobs", "0"], "0"),
        (["--sellect", "ALL"], "--select"),
    ],
)
def test_wrong_usage_is_2(check: Check, arguments: list[str], message: str) -> None:
    ended = check(*arguments)
    assert ended.code == 2
    assert message in ended.stderr
