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
from trainlint.runtime.report.memory import batch_that_fits, memory_line
from trainlint.runtime.report.result import Report, describe_json
from trainlint.runtime.report.terminal import print_report
from trainlint.runtime.trace import Ending, MemoryFacts


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


FRAME = """<body><iframe id="frame" src="report.html" width="{width}" height="900"></iframe><script>
onload = () => setTimeout(() => {{
  const page = document.getElementById('frame').contentDocument;
  const seen = document.createElement('p');
  const plots = [...page.querySelectorAll('.plot')];
  seen.textContent = JSON.stringify({{
    plots: plots.length,
    drawn: plots.filter(plot => plot.querySelector('.main-svg path')).length,
    wide: page.documentElement.scrollWidth,
    back: getComputedStyle(page.body).backgroundColor,
  }});
  document.body.append(seen);
}}, 3000);
</script></body>"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_html_draws_in_a_real_browser(tmp_path: Path, width: int, scheme: str) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    (tmp_path / "report.html").write_text(render(_report(stale=True)), encoding="utf-8")
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width))
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"]
    command += [f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=10000", frame.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert not re.search(r"CONSOLE.*(error|Uncaught)", shown.stderr, re.IGNORECASE)
    seen = json.loads(re.search(r"<p>(.*?)</p>", shown.stdout).group(1))  # type: ignore[union-attr]
    assert seen["drawn"] == seen["plots"] >= 4
    assert seen["wide"] <= width
    dark = max(int(part) for part in re.findall(r"\d+", seen["back"])) < 64
    assert dark == (scheme == "dark")


def test_notes_and_failed_measurements_are_shown() -> None:
    report = _report()
    report.evidence.trace.notes = ["torch.compile was left out"]
    report.evidence.trace.instrument_errors = ["Losses._look: ValueError: odd"]
    text = _text(report)
    assert "note: torch.compile was left out" in text
    assert "a measurement failed: Losses._look: ValueError: odd" in text


def test_memory_says_which_batch_would_fit() -> None:
    memory = MemoryFacts(weights=10, gradients=10, optimizer=20, activations=640, peak=700)
    memory.batch, memory.capacity = 32, 2**11
    assert batch_that_fits(memory) == 89  # (0.9 * 2048 - 60) / (640 / 32)
    assert memory_line(memory).endswith(
        "at batch 32; peak 700 B; about batch 89 would fit in 2.0 KiB"
    )
    memory.activations = 0
    assert batch_that_fits(memory) is None
    assert "would fit" not in memory_line(memory)


def test_the_rank_that_broke_first_is_shown() -> None:
    first, second = healthy(), healthy()
    second.rank = 1
    second.ending = Ending("crashed", "ValueError: no", "Traceback ...", at=1.0)
    first.ending = Ending("crashed", "RuntimeError: Connection closed by peer", at=2.0)
    evidence = Evidence("train.py", observe=first, ranks=[first, second])
    assert Report(evidence, judge(evidence)).broken == "rank 1 crashed: ValueError: no"
