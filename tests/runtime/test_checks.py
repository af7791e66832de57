"""The checks are pure functions of a trace: no torch here."""

from __future__ import annotations

import math
import sys

import pytest
from traces import HERE, facts, healthy, levels

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Level, NotChecked
from trainlint.runtime.judge import all_checks, judge
from trainlint.runtime.trace import (
    Alias,
    Backward,
    Event,
    ExtraForward,
    GroupFacts,
    LoaderPass,
    LossCall,
    ModuleFacts,
    RootCall,
    TensorFacts,
    Trace,
    from_json,
    to_json,
)


def test_a_healthy_trace_has_no_findings() -> None:
    assert levels(healthy()) == {}


def test_checks_import_no_torch() -> None:
    list(all_checks())
    import subprocess

    code = "import sys; from trainlint.runtime.judge import all_checks; list(all_checks()); "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_check_is_named_after_its_file_and_documented() -> None:
    for check in all_checks():
        assert check.rule.replace("-", "_") in check.run.__module__
        assert "Fix:" in check.documentation


def test_an_empty_trace_passes_nothing_silently() -> None:
    verdict = judge(Evidence(observe=Trace()))
    assert not verdict.findings
    assert all(isinstance(n, NotChecked) and n.reason for n in verdict.not_checked)
    named = {n.rule for n in verdict.not_checked}
    assert {"zero-grad-missing", "softmax-before-cross-entropy", "split-leak"} <= named


def test_trace_survives_json() -> None:
    trace = healthy()
    trace.extra = ExtraForward("Net", HERE, True)
    trace.steps[0].loss = math.inf
    assert from_json(to_json(trace)) == trace


def test_stale_gradients() -> None:
    trace = healthy()
    for step in trace.steps[1:]:
        step.stale = 2
    assert levels(trace)["zero-grad-missing"] is Level.FAIL


def test_one_stale_step_is_no_pattern() -> None:
    trace = healthy()
    trace.steps[3].stale = 2
    assert levels(trace) == {}


def test_cleared_gradients_explain_that_nothing_changes() -> None:
    trace = healthy()
    for step in trace.steps:
        step.cleared, step.with_grad, step.changed = True, 0, 0
    assert set(levels(trace)) == {"zero-grad-between"}


def test_forgotten_parameter_fails_and_forgotten_network_warns() -> None:
    trace = healthy()
    trace.params[1].optimizers = []
    trace.optimizers[0].groups = [GroupFacts(0.1, 0.0, [0])]
    assert levels(trace)["params-not-in-optimizer"] is Level.FAIL
    trace.params[1].root = "Perceptual"
    assert levels(trace)["params-not-in-optimizer"] is Level.WARN
    trace.params[1].moved_by_hand = True
    assert levels(trace) == {}


def test_cut_beginning_fails_and_unused_branch_is_noted() -> None:
    trace = healthy()
    trace.params[0].backwards = 0
    assert levels(trace)["graph-break-detach"] is Level.FAIL
    trace = healthy()
    trace.params[1].backwards = 0
    assert levels(trace)["graph-break-detach"] is Level.NOTE


def test_steps_that_change_nothing() -> None:
    trace = healthy()
    for step in trace.steps:
        step.changed = 0
    assert levels(trace)["step-changes-nothing"] is Level.FAIL
    for step in trace.steps:
        step.lrs = [0.0]
    assert set(levels(trace)) == {"lr-stuck-at-zero"}


def test_updates_that_stop_at_some_step() -> None:
    trace = healthy()
    for step in trace.steps[3:]:
        step.changed = 0
    assert levels(trace)["step-changes-nothing"] is Level.FAIL


def _loss(function: str, **more: object) -> LossCall:
    call = LossCall(function, HERE, 0, True, facts(-2, 2, [8, 4]), facts(0, 3, [8]), 4)
    call.target.requires_grad = False  # type: ignore[union-attr]
    for name, value in more.items():
        setattr(call, name, value)
    return call


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (_loss("cross_entropy", input_made_by="Softmax"), "softmax-before-cross-entropy"),
        (
            _loss("cross_entropy", input=facts(0, 1, [8, 4], row_sum_error=1e-6)),
            "softmax-before-cross-entropy",
        ),
        (_loss("nll_loss"), "nll-without-log"),
        (
            _loss("binary_cross_entropy_with_logits", input_made_by="Sigmoid"),
            "sigmoid-before-bce-logits",
        ),
        (_loss("binary_cross_entropy"), "bce-on-logits"),
        (_loss("kl_div"), "kl-div-input-not-log"),
        (_loss("mse_loss", input=facts(0, 1, [8, 1])), "mse-broadcast"),
        (_loss("cross_entropy", classes=1, input=facts(0, 1, [8, 1])), "softmax-single-class"),
    ],
)
def test_loss_inputs(call: LossCall, rule: str) -> None:
    trace = healthy()
    trace.losses = [call, call]
    assert levels(trace)[rule] is Level.FAIL


def test_logits_that_happen_to_look_like_probabilities_are_fine() -> None:
    trace = healthy()
    trace.losses = [_loss("binary_cross_entropy_with_logits", input=facts(0.4, 0.6, [8]))] * 5
    assert levels(trace) == {}


def _call(step: int, training: bool, reached: bool = True) -> RootCall:
    call = RootCall("Net", 1, HERE, step, 0, reached, training, 0, reached, reached)
    call.dropout_on, call.dropout_off = int(training), int(not training)
    return call


def test_mode_lost_after_evaluation() -> None:
    trace = healthy()
    trace.calls = [_call(0, True), _call(1, True), _call(2, False)]
    assert levels(trace)["train-not-restored"] is Level.FAIL
    trace.calls = [_call(0, False), _call(1, False)]
    assert levels(trace)["train-not-restored"] is Level.WARN


def test_layers_frozen_in_a_model_that_trains_are_meant_so() -> None:
    trace = healthy()
    trace.calls = [_call(0, True), _call(1, False)]
    trace.calls[1].training = True
    assert levels(trace) == {}


def test_evaluation_in_training_mode() -> None:
    trace = healthy()
    trace.passes = [LoaderPass(0, HERE, 0, "D", 0, 0, backwards=8, batches=8)]
    trace.passes.append(LoaderPass(1, HERE, 1, "D", 8, 1, batches=3))
    evaluation = [_call(8, True, reached=False) for _ in range(3)]
    for call in evaluation:
        call.loader = 1
    trace.calls = [_call(0, True), *evaluation]
    assert levels(trace)["eval-missing"] is Level.FAIL
    for call in evaluation:
        call.averaging = True
    assert levels(trace) == {}


def test_clipping_order() -> None:
    trace = healthy()
    scaled = [Event("scale", 0, 0), Event("clip", 0, 0, 0, HERE, "scaled with-gradients")]
    trace.events = [Event("backward", 0, 0), *scaled, Event("step", 0, 0, 0)] * 3
    trace.events.append(Event("scaler-update", 0, 0))
    assert set(levels(trace)) == {"clip-before-unscale"}


def test_alias_and_same_order() -> None:
    trace = healthy()
    trace.aliases = [Alias("best_state", "state", "Net", HERE)]
    one = LoaderPass(0, HERE, 0, "D", 0, 0, "abc", 0, "DistributedSampler", True, backwards=4)
    trace.passes = [one, one]
    found = levels(trace)
    assert found["best-state-alias"] is Level.FAIL
    assert found["sampler-set-epoch-missing"] is Level.FAIL


def test_ranks_that_differ() -> None:
    first, second = healthy(), healthy()
    for rank, trace in enumerate((first, second)):
        trace.rank, trace.world, trace.group_initialised, trace.wrapped = rank, 2, True, ["Net"]
        trace.fingerprints = [[1.0, 2.0], [1.0 + rank, 2.0]]
    evidence = Evidence(observe=first, ranks=[first, second])
    assert [f.rule for f in judge(evidence).findings] == ["ranks-diverge"]


def test_a_fixed_batch_that_is_not_learned_warns() -> None:
    fixed = healthy(12)
    for step in fixed.steps:
        step.loss = 2.3
    assert levels(healthy(), fixed=fixed)["fixed-batch-not-learned"] is Level.WARN


def test_a_loss_that_leaps_up_and_comes_back_warns() -> None:
    fixed = healthy(12)
    fixed.steps[1].loss = 1000.0
    assert levels(healthy(), fixed=fixed)["fixed-batch-not-learned"] is Level.WARN


def test_graphs_that_pile_up_within_an_epoch_warn() -> None:
    trace = healthy(10)
    for position, step in enumerate(trace.steps):
        step.live_losses = position % 8
    assert levels(trace)["loss-accumulate-graph"] is Level.WARN
    for position, step in enumerate(trace.steps):
        step.live_losses = position % 3
    assert "loss-accumulate-graph" not in levels(trace)


def test_a_batch_in_the_place_of_the_sequence_warns() -> None:
    trace = healthy()
    trace.passes = [LoaderPass(0, HERE, 0, "Pictures", 0, 0, batch_size=16, backwards=8)]
    layer = ModuleFacts(
        "encoder.attention", "MultiheadAttention", "ViT", sequence_first=[16, 17, 32]
    )
    trace.modules = [layer]
    assert levels(trace)["mha-batch-first"] is Level.WARN
    layer.sequence_first = [17, 16, 32]
    assert "mha-batch-first" not in levels(trace)


def test_the_first_loss_is_that_of_one_call_whatever_is_made_of_it() -> None:
    trace = healthy()
    prediction = facts(-0.1, 0.1, [8, 10])
    target = TensorFacts([8], "int64", low=0, high=9, ignored=0.0)
    call = LossCall("cross_entropy", HERE, 0, True, prediction, target, classes=10, value=2.3)
    trace.losses = [call]
    # Divided for accumulation, added up over several networks, weighted.
    trace.backwards = [Backward(HERE, 0, 2.3 / 4, graph=["DivBackward0", "NllLossBackward0"])]
    assert "loss-at-start" not in levels(trace)
    call.value = 25.0
    assert levels(trace)["loss-at-start"] is Level.WARN


def test_optimizers_that_follow_one_another_share_nothing() -> None:
    trace = healthy()
    trace.optimizers *= 2
    for param in trace.params:
        param.optimizers = [0, 1]
    for step in trace.steps[4:]:
        step.optimizer = 1
    assert "duplicate-params" not in levels(trace)
    for position, step in enumerate(trace.steps):
        step.optimizer = position % 2
    assert levels(trace)["duplicate-params"] is Level.WARN


def test_layers_that_never_run_are_noted() -> None:
    trace = healthy()
    trace.params[1].order, trace.params[1].backwards = None, 0
    assert levels(trace)["graph-break-detach"] is Level.NOTE


def test_a_model_with_a_memory_is_not_asked_for_the_same_batch_again() -> None:
    fixed = healthy(12)
    for position, step in enumerate(fixed.steps):
        step.loss = 1.0 + 0.01 * position
    assert levels(healthy(), fixed=fixed)["fixed-batch-not-learned"] is Level.WARN
    fixed.own_state = ["queue"]
    assert "fixed-batch-not-learned" not in levels(healthy(), fixed=fixed)


def test_softmax_over_the_samples_of_a_program_without_a_loader() -> None:
    trace = healthy()
    call = _loss("softmax", input=facts(-1, 1, [32, 4]), options={"dim": 0, "outside": 1.0})
    trace.losses = [call, call]
    assert "softmax-wrong-dim" not in levels(trace)
    trace.extra = ExtraForward("Net", output_shape=[32, 4])
    assert levels(trace)["softmax-wrong-dim"] is Level.WARN
    call.options["outside"] = 0.0
    assert "softmax-wrong-dim" not in levels(trace)


def test_a_check_that_fails_itself_is_no_crash() -> None:
    trace = healthy()
    trace.steps[0].lrs = None  # type: ignore[assignment]
    reasons = [n.reason for n in judge(Evidence(observe=trace)).not_checked]
    assert any("the check itself failed (TypeError" in reason for reason in reasons)


def test_nothing_that_slips_into_a_trace_costs_all_of_it() -> None:
    trace = healthy()
    trace.params[0].shape = [4, object()]  # type: ignore[list-item]
    assert from_json(to_json(trace)).params[1] == trace.params[1]
