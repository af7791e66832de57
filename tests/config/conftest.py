"""A small set of rules to select from."""

from __future__ import annotations

import pytest

from trainlint.catalogue import RuleFacts
from trainlint.config import SelectorTable
from trainlint.finding import Severity


@pytest.fixture
def rules() -> tuple[RuleFacts, ...]:
    """Two families; a hint and a preview rule among them."""
    return (
        RuleFacts("TLG001", "zero-grad-missing", "gradients", Severity.ERROR, False),
        RuleFacts("TLG002", "uncalled-backward", "gradients", Severity.WARNING, False),
        RuleFacts("TLG101", "young-gradient", "gradients", Severity.ERROR, True),
        RuleFacts("TLC001", "weights-lost", "checkpoints_and_weights", Severity.WARNING, False),
        RuleFacts("TLC002", "slow-save", "checkpoints_and_weights", Severity.INFO, False),
    )


@pytest.fixture
def table(rules: tuple[RuleFacts, ...]) -> SelectorTable:
    """The selectors of these rules."""
    return SelectorTable(rules)
