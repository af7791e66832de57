"""Safe repairs of the documentation's faulty examples: no rule objects any more, and they train."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.rules.test_fixes import reports_on
from tests.rules.test_rules import _CODE_BLOCK
from trainlint.analysis import Project, SourceFile
from trainlint.engine import check_file
from trainlint.finding import Applicability
from trainlint.fixing import fix_source
from trainlint.registry import all_rules
from trainlint.rule import Rule

_REPAIRING = [rule for rule in all_rules() if rule.fix_safety is Applicability.SAFE]


def safely_repaired(rule: Rule, folder: Path) -> str:
    """The rule's faulty example after its safe repairs; skips the test where there are none."""
    example = dict(_CODE_BLOCK.findall(rule.documentation())).get("Example", "")
    fixed = fix_source(example, reports_on(example, rule, folder), unsafe=False)
    if not fixed.applied:
        pytest.skip("the example has no safe repair")
    return fixed.text


@pytest.mark.parametrize("rule", _REPAIRING, ids=lambda rule: rule.name)
def test_no_rule_objects_to_what_a_safe_repair_makes(rule: Rule, tmp_path: Path) -> None:
    source = SourceFile.from_text(tmp_path / "train.py", safely_repaired(rule, tmp_path))
    left = check_file(source, Project(tmp_path), all_rules()).reports
    assert not [report.rule.name for report in left], source.text


@pytest.mark.slow
@pytest.mark.parametrize("rule", _REPAIRING, ids=lambda rule: rule.name)
def test_safely_repaired_training_lowers_the_loss(rule: Rule, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    names: dict[str, Any] = {}
    exec(compile(safely_repaired(rule, tmp_path), "train.py", "exec"), names)
    train = names.get("train")
    if train is None:
        pytest.skip("the example is no training loop")

    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    labels = (inputs[:, 0] > 0).long()
    loader = list(zip(inputs.split(8), labels.split(8), strict=True))
    model = torch.nn.Linear(4, 2)
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update = average.update_parameters
    supplies = {
        "model": model,
        "loader": loader,
        "criterion": torch.nn.CrossEntropyLoss(),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "accumulation": 2,
        "ema": average,
    }
    wanted = inspect.signature(train).parameters
    before = supplies["criterion"](model(inputs), labels).item()
    train(**{name: supplies[name] for name in wanted})
    assert supplies["criterion"](model(inputs), labels).item() < before
