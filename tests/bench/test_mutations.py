"""The operators of the recall bench: each breaks a right program in a way that its rule notices."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.bench.mutations import OPERATORS, Operator, Program
from tests.rules.test_rules import _CODE_BLOCK
from trainlint.analysis import Project, SourceFile
from trainlint.engine import check_file
from trainlint.registry import all_rules

_RULES = {rule.name: rule for rule in all_rules()}
_RIGHT = [
    dict(_CODE_BLOCK.findall(rule.documentation())).get("Use instead", "") for rule in all_rules()
]
_TRAINER = """\
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.layer(self.dropout(x))


def evaluate(model, val_loader, criterion, device):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            x = x.to(device)
            y = y.to(device)
            total += criterion(model(x), y).item()
    return total / len(val_loader)


def main(train_set, val_set, make_average):
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    device = "cuda"
    train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=8)
    model = Net().to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, epochs=10, steps_per_epoch=len(train_loader)
    )
    ema = make_average(model.parameters())
    start = 0
    if args.resume:
        last = torch.load("last.pt", map_location="cpu", weights_only=True)
        model.load_state_dict(last["model"])
        optimizer.load_state_dict(last["optimizer"])
        scheduler.load_state_dict(last["scheduler"])
        start = last["epoch"] + 1
    for epoch in range(start, 10):
        model.train()
        for x, y in train_loader:
            x = x.to(device)
            y = y.to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            ema.update()
        ema.store()
        ema.copy_to()
        print(epoch, evaluate(model, val_loader, criterion, device))
        ema.restore()
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "epoch": epoch,
        }
        torch.save(state, "last.pt")
"""


def is_noticed(text: str, operator: Operator, path: Path) -> bool:
    """Whether the operator's rule reports anything in a project of this one file."""
    source = SourceFile.from_text(path, text)
    return bool(check_file(source, Project(path.parent), [_RULES[operator.finds]]).reports)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_rule_notices_what_the_operator_breaks(operator: Operator, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    broken: list[str] = []
    for right in (_TRAINER, *_RIGHT):
        program = Program(path, right)
        broken += [program.edited(mutation.edits) for mutation in operator.breaks(program)]
    assert broken, "no program has what the operator needs"
    for text in broken:
        ast.parse(text)
    assert any(is_noticed(text, operator, path) for text in broken)


@pytest.mark.parametrize("rule", sorted({operator.finds for operator in OPERATORS}))
def test_the_right_program_is_right(rule: str, tmp_path: Path) -> None:
    source = SourceFile.from_text(tmp_path / "train.py", _TRAINER)
    assert not check_file(source, Project(tmp_path), [_RULES[rule]]).reports


def test_edits_count_characters_although_the_tree_counts_bytes(tmp_path: Path) -> None:
    program = Program(tmp_path / "train.py", 'größe = "é"; optimizer.step()\n')
    statement = program.tree.body[1]
    assert program.edited([program.remove(statement)]) == 'größe = "é"; pass\n'


def test_argument_goes_with_its_comma(tmp_path: Path) -> None:
    program = Program(tmp_path / "train.py", "f(x, p=0.1, training=flag)\ng(a=1, b=2)\n")
    first, second = program.calls(program.tree)
    edits = [program.without_argument(first, "p"), program.without_argument(second, "a")]
    text = program.edited([edit for edit in edits if edit is not None])
    assert text == "f(x, training=flag)\ng(b=2)\n"
