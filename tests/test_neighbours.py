"""A sick file costs its own findings, not those of the files beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.analysis import Project, SourceError, SourceFile
from trainlint.engine import check_file
from trainlint.registry import all_rules

HEALTHY = """import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad
"""


def names_found(path: Path, project: Project) -> list[str]:
    source = SourceFile.from_bytes(path, path.read_bytes())
    return [report.rule.name for report in check_file(source, project, all_rules()).reports]


@pytest.mark.parametrize("first", ["a_sick.py", "z_sick.py"])
def test_null_bytes_in_one_file_leave_the_other_checked(tmp_path: Path, first: str) -> None:
    healthy, sick = tmp_path / "healthy.py", tmp_path / first
    healthy.write_text(HEALTHY)
    sick.write_text(HEALTHY + "\0")
    project = Project(tmp_path)
    for path in sorted([healthy, sick]):
        if path == sick:
            with pytest.raises(SourceError):
                names_found(path, project)
        else:
            assert "uncalled-method" in names_found(path, project)


def test_code_that_nests_too_deep_to_follow_keeps_its_plain_findings(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    branches = "".join(
        f"    elif flag == {number}: model.train({number})\n" for number in range(900)
    )
    path.write_text(HEALTHY + f"\ndef switch(model, flag):\n    if flag: pass\n{branches}")
    assert "uncalled-method" in names_found(path, Project(tmp_path))
