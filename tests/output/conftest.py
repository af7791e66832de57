"""A small run with a bit of everything, shared by the tests of the formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from trainlint.finding import Applicability, Finding, Fix, Severity
from trainlint.output import FileError, OutputContext

TRAIN_LINES = [
    "import torch",
    "",
    "for images, labels in loader:",
    "\tloss = criterion(model(images), labels)",
    "\tloss.backward()",
    "",
    "\toptimizer.step()",
]
CELL_LINES = [
    "class Net(nn.Module):",
    "    def __init__(self):",
    "        self.fc = nn.Linear(2, 1)",
]

ZERO_GRAD_MISSING = Finding(
    path="src/train.py",
    line=5,
    column=2,
    end_line=5,
    end_column=17,
    code="TLG001",
    rule="zero-grad-missing",
    severity=Severity.ERROR,
    message="`loss.backward()` adds to the gradients of all earlier steps",
    help="call `optimizer.zero_grad()` once in every step",
    fix=Fix(Applicability.SAFE, "add `optimizer.zero_grad()`"),
    statement_line=5,
    statement_end_line=5,
)
MISSING_SUPER_INIT = Finding(
    path="src/model.ipynb",
    line=2,
    column=5,
    end_line=2,
    end_column=24,
    code="TLN003",
    rule="missing-super-init",
    severity=Severity.WARNING,
    message="`Net` sets a submodule before `nn.Module` is ready",
    help="call `super().__init__()` first",
    fix=Fix(Applicability.UNSAFE, "call `super().__init__()`"),
    statement_line=2,
    statement_end_line=2,
    cell=3,
)
SLOW_LOADER = Finding(
    path="src/train.py",
    line=3,
    column=23,
    end_line=3,
    end_column=29,
    code="TLS001",
    rule="slow-loader",
    severity=Severity.INFO,
    message="100% of the time, <one> process loads & decodes",
    help="",
    fix=None,
    statement_line=3,
    statement_end_line=3,
)


def _lines(path: str, cell: int | None) -> Sequence[str]:
    return TRAIN_LINES if cell is None else CELL_LINES


@pytest.fixture
def make_finding() -> Callable[..., Finding]:
    """Makes a finding like the error of the sample run, with other values where given."""
    import dataclasses

    def make(**changes: Any) -> Finding:
        return dataclasses.replace(ZERO_GRAD_MISSING, **changes)

    return make


@pytest.fixture
def sample_run() -> OutputContext:
    """An error with a safe fix, a warning with an unsafe one, an info, and an unreadable file."""
    return OutputContext(
        findings=[SLOW_LOADER, ZERO_GRAD_MISSING, MISSING_SUPER_INIT],
        errors=[FileError("src/old.py", "cannot parse at line 3: invalid syntax")],
        file_count=3,
        source_lines=_lines,
    )


@pytest.fixture
def clean_run() -> OutputContext:
    """A run that finds nothing."""
    return OutputContext(findings=[], file_count=3)
