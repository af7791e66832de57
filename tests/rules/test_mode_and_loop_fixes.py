"""Where the repairs of the rules about modes, gradients and samplers put their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.analysis import Project, SourceFile
from trainlint.engine import check_file
from trainlint.finding import Applicability
from trainlint.fixing import fix_source
from trainlint.registry import all_rules

_TRAINING = """
def fit(model, loader, criterion, optimizer, scaler, epochs):
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            {backward}
            {step}
"""
_MANUAL = """
import lightning
import torch

class Manual(lightning.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        loss = self.net(batch).mean()
        self.manual_backward(loss)
        opt.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
_SAMPLER = """
from torch.utils.data import DataLoader, DistributedSampler

def fit(model, dataset, optimizer, criterion, epochs):
    {setup}
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
"""


def fixed(code: str, rule_name: str, folder: Path) -> tuple[str, list[Applicability]]:
    """The text after the rule's fixes, and how sure each of them is."""
    rules = [rule for rule in all_rules() if rule.name == rule_name]
    path = folder / "train.py"
    path.write_text(code, "utf-8")
    reports = check_file(SourceFile.from_text(path, code), Project(folder), rules).reports
    assert reports
    sure = [report.repair.applicability for report in reports if report.repair is not None]
    return fix_source(code, reports, unsafe=True).text, sure


def test_manual_optimisation_clears_before_its_backward_pass(tmp_path: Path) -> None:
    text, sure = fixed(_MANUAL, "zero-grad-missing", tmp_path)
    assert "        opt.zero_grad()\n        self.manual_backward(loss)\n" in text
    assert sure == [Applicability.UNSAFE]


def test_an_optimizer_that_comes_later_cannot_be_cleared_there(tmp_path: Path) -> None:
    code = _MANUAL.replace("        opt = self.optimizers()\n", "").replace(
        "        opt.step()", "        opt = self.optimizers()\n        opt.step()"
    )
    text, sure = fixed(code, "zero-grad-missing", tmp_path)
    assert text == code
    assert sure == []


@pytest.mark.parametrize(
    ("backward", "step"),
    [
        ("loss.backward()", "optimizer.step()"),
        ("scaler.scale(loss).backward()", "scaler.step(optimizer)"),
    ],
)
def test_gradients_are_cleared_first_thing_in_the_inner_loop(
    backward: str, step: str, tmp_path: Path
) -> None:
    code = _TRAINING.format(backward=backward, step=step)
    text, _ = fixed(code, "zero-grad-missing", tmp_path)
    expected = "in enumerate(loader):\n            optimizer.zero_grad()\n            loss ="
    assert expected in text


def test_accumulated_gradients_are_not_cleared(tmp_path: Path) -> None:
    step = "if (i + 1) % 4 == 0:\n                optimizer.step()"
    code = _TRAINING.format(backward="loss.backward()", step=step)
    text, sure = fixed(code, "zero-grad-missing", tmp_path)
    assert (text, sure) == (code, [])


@pytest.mark.parametrize(
    ("setup", "line", "sure"),
    [
        (
            "sampler = DistributedSampler(dataset)\n"
            "    loader = DataLoader(dataset, 8, sampler=sampler)",
            "sampler.set_epoch(epoch)",
            Applicability.SAFE,
        ),
        (
            "loader = DataLoader(dataset, 8, sampler=DistributedSampler(dataset))",
            "loader.sampler.set_epoch(epoch)",
            Applicability.UNSAFE,
        ),
    ],
)
def test_epoch_is_told_at_the_top_of_the_epoch(
    setup: str, line: str, sure: Applicability, tmp_path: Path
) -> None:
    code = _SAMPLER.format(setup=setup)
    text, applicability = fixed(code, "sampler-set-epoch-missing", tmp_path)
    assert f"range(epochs):\n        {line}\n        for x" in text
    assert applicability == [sure]


def test_eval_goes_before_the_context_that_holds_only_the_loop(tmp_path: Path) -> None:
    code = """
import torch

class Trainer:
    def validate(self, val_loader):
        with torch.no_grad():
            for x, y in val_loader:
                print(self.model(x).argmax(1) == y)
"""
    text, _ = fixed(code, "eval-missing", tmp_path)
    assert "val_loader):\n        self.model.eval()\n        with torch.no_grad():" in text


def test_no_grad_wraps_the_loop_where_the_function_also_trains(tmp_path: Path) -> None:
    code = """
def fit(model, optimizer, criterion, train_loader, val_loader):
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        model.eval()
        for x, y in val_loader:
            print(model(x).argmax(1) == y)
"""
    text, _ = fixed(code, "eval-without-no-grad", tmp_path)
    assert (
        "model.eval()\n        with torch.no_grad():\n            for x, y in val_loader:" in text
    )
    assert "import torch" in text


def test_a_loop_over_phases_gets_the_mode_of_each_phase(tmp_path: Path) -> None:
    code = """
def fit(model, loaders, criterion, optimizer):
    for phase in ["train", "val"]:
        for x, y in loaders[phase]:
            loss = criterion(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""
    text, _ = fixed(code, "eval-missing", tmp_path)
    assert '        model.train(phase != "val")\n        for x, y in' in text.replace("'", '"')


def test_a_loader_without_a_name_is_not_given_one(tmp_path: Path) -> None:
    code = """
from torch.utils.data import DataLoader

def fit(model, optimizer, criterion, train_set):
    for epoch in range(3):
        for x, y in DataLoader(train_set, batch_size=32):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
"""
    rules = [rule for rule in all_rules() if rule.name == "train-loader-no-shuffle"]
    source = SourceFile.from_text(tmp_path / "train.py", code)
    (report,) = check_file(source, Project(tmp_path), rules).reports
    assert report.message.startswith("this loader is never shuffled")
