"""The three forms of a report, from a hand-made trace."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.console import Console
from traces import healthy

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.judge import judge
from trainlint.runtime.report.figures import all_figures
from trainlint.runtime.report.html import render
from trainlint.runtime.report.result import Report, describe_json
from trainlint.runtime.report.terminal import print_report
from trainlint.runtime.trace import Ending


def _report(stale: bool = False) -> Report:
    trace = healthy()
    for step in trace.steps[1:] if stale else []:
        step.stale = 2
    evidence = Evidence("train.py", observe=trace, fixed=healthy(), zeroed=healthy())
    return Report(evidence, judge(evidence))


def _text(report: Report) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=100, no_color=True))
    return stream.getvalue()


def test_verdict_comes_first_and_sets_the_exit_code() -> None:
    assert _text(_report()).startswith("ready to train")
    assert _text(_report(stale=True)).startswith("fix before training")
    assert (_report().exit_code(), _report(stale=True).exit_code()) == (0, 1)


def test_a_finding_shows_line_evidence_and_fix() -> None:
    text = _text(_report(stale=True))
    assert "train.py:10" in text
    assert "seen:" in text
    assert "fix:" in text
    assert "not checked" in text


def test_a_crash_keeps_partial_results() -> None:
    report = _report(stale=True)
    report.evidence.trace.ending = Ending("crashed", "ValueError: no", "Traceback ...")
    assert report.exit_code() == 2
    assert "did not finish" in _text(report)
    assert "zero-grad-missing" in _text(report)


def test_json_is_documented_and_strict() -> None:
    report = _report()
    report.evidence.trace.steps[0].loss = float("nan")
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert set(data) == set(describe_json())


def test_html_is_one_file_without_network() -> None:
    page = render(_report())
    own = re.sub(r"<script>/\*\*?\s*\n?\s*\*? ?plotly.*?</script>", "", page, flags=re.S)
    assert "<script src" not in own
    assert "<link" not in own
    assert {"loss", "update-ratio"} <= {f.name for f in all_figures(_report().evidence)}


@pytest.mark.slow
def test_html_draws_in_a_real_browser(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    page = tmp_path / "report.html"
    page.write_text(render(_report()), encoding="utf-8")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=8000", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert shown.stdout.count("main-svg") >= 4
    assert not re.search(r"CONSOLE.*(error|Uncaught)", shown.stderr, re.IGNORECASE)
