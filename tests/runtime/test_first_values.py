"""What became of the values that parameters had before the first step."""

from __future__ import annotations

from traces import HERE, healthy, levels

from trainlint.runtime.findings import Level
from trainlint.runtime.trace import ExtraForward, Overwritten


def test_loaded_weights_that_were_initialised_again() -> None:
    trace = healthy()
    trace.overwritten = [Overwritten("load_state_dict", HERE, [8, 8], 40, 60)]
    assert levels(trace)["init-after-load"] is Level.FAIL


def test_a_new_head_on_loaded_weights_is_fine_tuning() -> None:
    trace = healthy()
    trace.overwritten = [Overwritten("load_state_dict", HERE, [8, 8], 2, 60)]
    assert "init-after-load" not in levels(trace)


def test_a_special_initialisation_that_was_lost() -> None:
    trace = healthy()
    trace.overwritten = [Overwritten("normal_", HERE, [8, 8], 3, 0)]
    assert levels(trace)["init-after-load"] is Level.WARN


def test_trained_weights_that_train_would_freeze() -> None:
    trace = healthy()
    trace.extra = ExtraForward("Net", HERE, True, frozen_by_train=["first.weight"])
    assert levels(trace)["freeze-only-in-train"] is Level.WARN
    trace.params[0].changed = 0
    assert "freeze-only-in-train" not in levels(trace)
