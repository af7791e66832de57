"""What a run says of a static finding, without a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from traces import healthy

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.judge import judge
from trainlint.runtime.static import compare, enclosing_function, local_files
from trainlint.runtime.trace import Place

SOURCE = """
import torch
import beside
from package import inner


def train(model, loader, optimizer):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stale", "function", "state"),
    [(2, "train", "confirmed"), (0, "train", "cleared"), (0, "another", "not reached")],
)
def test_states(script: Path, stale: int, function: str, state: str) -> None:
    trace = healthy()
    for step in trace.steps:
        step.place = Place(str(script), 11, "optimizer.step()", function)
        step.stale = stale
    evidence = Evidence("train.py", observe=trace)
    found = compare(str(script), False, evidence, judge(evidence))
    assert [(f.rule, f.state) for f in found] == [("zero-grad-missing", state)]


def test_the_enclosing_function(script: Path) -> None:
    assert enclosing_function(script, 9) == "train"
    assert enclosing_function(script, 2) == "<module>"


def test_local_imports_belong_to_the_script(script: Path) -> None:
    folder = script.parent
    (folder / "beside.py").write_text("import deeper, torch")
    (folder / "deeper.py").write_text("")
    (folder / "package").mkdir()
    (folder / "package" / "inner.py").write_text("broken (")
    (folder / "other.py").write_text("")
    names = {path.name for path in local_files(script)}
    assert names == {"train.py", "beside.py", "deeper.py", "inner.py"}
