"""A part of the bench, small enough for every change: faults by name, clean programs untouched."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy", reason="needs the extra `probe`")

import clean_programs
import silent_errors
from bench_probe import mutation_case
from case import Case, run
from mutations import MUTATIONS

pytestmark = pytest.mark.slow
# One of each family; the bench has all of them.
FAULTS = (
    "mlp-no-zero-grad", "resnet-zero-grad-between", "cnn-replaced-head", "mlp-detached-encoder",
    "mlp-train-not-restored", "gpt-attention-dropout-in-eval", "cnn-nll-on-logits",
    "regression-broadcast", "gpt-no-causal-mask", "regression-clip-before-unscale",
    "mlp-best-state-alias", "vae-nan", "vit-batch-first",
)  # fmt: skip
ERRORS = ("TF-17877", "mmpretrain-702")
CLEAN = ("cnn", "dcgan", "diffusion", "gpt", "lstm", "mlp")
_ALL = {m.name: mutation_case(m) for m in MUTATIONS}
_ALL |= {case.name: case for case in silent_errors.cases()}
_ALL |= {case.name: case for case in clean_programs.bases()}


def test_every_mutation_changes_its_program() -> None:
    assert len({m.source() for m in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("case", [_ALL[name] for name in FAULTS + ERRORS], ids=lambda c: c.name)
def test_a_fault_is_found_by_name(case: Case) -> None:
    outcome = run(case, {}, cold=False)
    assert outcome.found, outcome


@pytest.mark.parametrize("case", [_ALL[name] for name in CLEAN], ids=lambda c: c.name)
def test_a_clean_program_is_left_alone(case: Case) -> None:
    outcome = run(case, {}, cold=False)
    assert outcome.clean, outcome
    assert outcome.warns == []


@pytest.mark.parametrize("case", clean_programs.reference_trainers(), ids=lambda c: c.name)
def test_a_recipe_gets_no_fail_and_no_warning(case: Case) -> None:
    outcome = run(case, {}, cold=False)
    assert outcome.clean, outcome
    assert outcome.warns == []
