"""The twenty silent errors of the TrainCheck study, as far as a CPU with gloo ranks shows them.

Each identifier names the issue that the study took the error from. Most are a mutation of a base
program; a few need a program of their own, in ``silent_error_programs/``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from case import Case, write_script
from mutations import MUTATIONS, Mutation

GROUP = "silent error"
PROGRAMS = Path(__file__).parent / "silent_error_programs"
PUBLISHED = 20
# TF-23723 computes the length of generated text wrongly: no training takes place.
OUT_OF_SCOPE = ("TF-23723",)

_BY_MUTATION = {
    "SO-60335387": "cnn-no-zero-grad",
    "x-jxmnop-ddp-out-of-sync": "ddp-bypassed",
    "DS-1801": "ddp-clip-on-one-rank",
    "PT-51800": "cnn-spectral-norm-eval-first",
    "LT-725": "diffusion-autocast-lost",
    "TF-33844": "gpt-attention-dropout-in-eval",
    "TF-34204": "regression-merged-batch",
    "SO-67180955": "regression-worker-copies",
    "TF-33455": "resnet-short-schedule",
    "TF-29903": "mlp-checkpoint-damaged",
    "PT-104336": "ddp-cast-after-wrapping",
    "PT-115607": "mlp-updates-stop",
}
# Identifier, program, rules under which it may be found, ranks.
_BY_PROGRAM = (
    ("PF-84911", "frozen_but_batch_norm", ("optimizer-wrong-params",), 1),
    ("PT-84803", "lossy_all_reduce", ("ranks-diverge",), 2),
    ("PT-96600", "lossy_bucket", ("ranks-diverge",), 2),
    ("baichuan2-86", "lossy_copy", ("ranks-diverge",), 2),
    ("mmpretrain-702", "frozen_stages", ("freeze-only-in-train",), 1),
    ("TF-17877", "initialised_again", ("init-after-load",), 1),
    ("DS-5794", "expert_exchange", ("collective-mismatch",), 2),
)


def cases() -> list[Case]:
    """Every error that is in scope."""
    by_name = {m.name: m for m in MUTATIONS}
    found = [_mutated(error, by_name[name]) for error, name in _BY_MUTATION.items()]
    for error, program, rules, ranks in _BY_PROGRAM:
        script = f"{program}.py"
        prepare = partial(write_script, script, (PROGRAMS / script).read_text())
        options = ("--no-fixed-batch", *_PATIENCE.get(error, ()))
        found.append(Case(error, GROUP, script, prepare, rules, options, ranks=ranks))
    return found


# This one hangs by nature, and the probe has to find out.
_PATIENCE = {"DS-5794": ("--timeout", "30")}


def _mutated(error: str, mutation: Mutation) -> Case:
    script = f"{mutation.name}.py"
    prepare = partial(write_script, script, mutation.source())
    options = () if mutation.fixed else ("--no-fixed-batch",)
    return Case(error, GROUP, script, prepare, mutation.rules, options, ranks=mutation.ranks)
