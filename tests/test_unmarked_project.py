"""A folder that nothing marks as a project: an unpacked archive, or a student's homework."""

from __future__ import annotations

from pathlib import Path

from trainlint.analysis import Project, SourceFile
from trainlint.engine import check_file
from trainlint.project_root import ProjectRoots
from trainlint.registry import all_rules

_MODEL = """\
import torch.nn as nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 1)
        self.squash = nn.Sigmoid()

    def forward(self, x):
        return self.squash(self.head(x))
"""
_ENGINE = """\
import torch.nn as nn
from recommender.model import Scorer

class Engine:
    def __init__(self):
        self.model = Scorer()
        self.criterion = nn.BCEWithLogitsLoss()

    def loss(self, x, y):
        return self.criterion(self.model(x), y)
"""


def test_imports_from_the_folder_above_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "recommender"
    folder.mkdir()
    (folder / "model.py").write_text(_MODEL)
    (folder / "engine.py").write_text(_ENGINE)
    assert ProjectRoots().nearest_marked(str(folder)) is None
    project = Project(Path(ProjectRoots().of_file(str(folder / "engine.py"))))
    rules = [rule for rule in all_rules() if rule.name == "sigmoid-before-bce-logits"]
    source = SourceFile.from_text(folder / "engine.py", _ENGINE)
    assert len(check_file(source, project, rules).reports) == 1
