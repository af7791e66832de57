"""The repairs of the rules about losses and weight decay: what the code becomes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainlint.analysis import Project, SourceFile
from trainlint.engine import check_file
from trainlint.fixing import fix_source
from trainlint.registry import all_rules
from trainlint.rule import Rule

_NAMES = (
    "softmax-before-cross-entropy",
    "sigmoid-before-bce-logits",
    "nll-without-log",
    "kl-div-input-not-log",
    "loss-arg-swap",
    "weight-decay-on-norm-bias",
)
_RULES = [rule for rule in all_rules() if rule.name in _NAMES]
_HEADER = (
    "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
    "def f(net, x, y):\n    "
)


def repaired(text: str, rule: Rule, folder: Path, *, unsafe: bool) -> tuple[str, int]:
    """The text after the rule's fixes, and how often the rule reports it then."""
    path = folder / "train.py"
    reports = check_file(SourceFile.from_text(path, text), Project(folder), [rule]).reports
    fixed = fix_source(text, reports, unsafe=unsafe).text
    left = check_file(SourceFile.from_text(path, fixed), Project(folder), [rule]).reports
    return fixed, len(left)


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule.name)
def test_fixed_example_is_no_longer_flagged(rule: Rule, tmp_path: Path) -> None:
    example = re.search(
        r"## Example\n+```python\n(.*?)^```", rule.documentation(), re.DOTALL | re.MULTILINE
    )
    assert example is not None
    fixed, left = repaired(example[1], rule, tmp_path, unsafe=True)
    assert fixed != example[1]
    assert left == 0


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "softmax-before-cross-entropy",
            "return F.cross_entropy(torch.softmax(net(x), dim=1), y)",
            "return F.cross_entropy(net(x), y)",
        ),
        (
            "softmax-before-cross-entropy",
            "return nn.CrossEntropyLoss()(nn.Softmax(dim=1)(net(x)), y)",
            "return nn.CrossEntropyLoss()(net(x), y)",
        ),
        (
            "sigmoid-before-bce-logits",
            "return F.binary_cross_entropy_with_logits(net(x).sigmoid(), y)",
            "return F.binary_cross_entropy_with_logits(net(x), y)",
        ),
        (
            "nll-without-log",
            "return F.nll_loss(F.softmax(net(x), dim=1), y)",
            "return F.nll_loss(F.log_softmax(net(x), dim=1), y)",
        ),
        (
            "kl-div-input-not-log",
            "return F.kl_div(nn.Softmax(dim=1)(net(x)), y)",
            "return F.kl_div(nn.LogSoftmax(dim=1)(net(x)), y)",
        ),
        (
            "loss-arg-swap",
            "return F.kl_div(y, F.log_softmax(net(x), dim=1))",
            "return F.kl_div(y, F.log_softmax(net(x), dim=1))",
        ),
    ],
)
def test_safe_fix_edits_the_argument(name: str, before: str, after: str, tmp_path: Path) -> None:
    rule = next(rule for rule in _RULES if rule.name == name)
    fixed, _ = repaired(f"{_HEADER}{before}\n", rule, tmp_path, unsafe=False)
    assert fixed == f"{_HEADER}{after}\n"


def test_swap_is_safe_where_both_names_say_what_they_are(tmp_path: Path) -> None:
    rule = next(rule for rule in _RULES if rule.name == "loss-arg-swap")
    header = "import torch.nn.functional as F\n\n\ndef f(pred, target):\n"
    before = f"{header}    return F.kl_div(target, pred)\n"
    fixed, left = repaired(before, rule, tmp_path, unsafe=False)
    assert fixed == before.replace("(target, pred)\n", "(pred, target)\n")
    assert left == 0


def test_last_softmax_layer_becomes_an_identity(tmp_path: Path) -> None:
    rule = next(rule for rule in _RULES if rule.name == "softmax-before-cross-entropy")
    before = (
        "import torch.nn as nn\n\nnet = nn.Sequential(nn.Linear(3, 3), nn.Softmax(dim=1))\n"
        "criterion = nn.CrossEntropyLoss()\n\n\ndef step(x, y):\n    return criterion(net(x), y)\n"
    )
    assert repaired(before, rule, tmp_path, unsafe=False)[0] == before
    fixed, left = repaired(before, rule, tmp_path, unsafe=True)
    assert fixed == before.replace("nn.Softmax(dim=1)", "nn.Identity()")
    assert left == 0
