from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.evaluation_loops import evaluation_loop, trains
from trainlint.analysis.evaluations import (
    EVALUATES,
    SWITCHES_TO_EVALUATION,
    Blame,
    wrong_evaluations,
)
from trainlint.analysis.graph_use import (
    is_handed_on,
    is_shape_probe,
    is_warm_up,
    may_need_graph,
    speaks_of_gradients,
)
from trainlint.analysis.protocols.modes import EVAL, ForwardPass
from trainlint.analysis.structure import is_parameterless
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class EvalWithoutNoGrad(Rule):
    """An evaluation builds autograd graphs that nobody uses.

    ## What it does
    Reports a forward pass over validation or test data, or after `model.eval()` in the same
    function, that runs with gradients on although nothing is differentiated. Callers are followed:
    what a caller wraps in `no_grad()` is fine, and where only some callers do, the others' calls
    are reported.

    ## Why is this bad?
    Every intermediate result is kept for a backward pass that never comes: two to three times the
    memory, less speed, and out of memory in validation only. If outputs are collected, their graphs
    pile up. `eval()` does not switch gradients off.

    ## Example
    ```python
    def evaluate(model, test_loader):
        model.eval()
        correct = 0
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct
    ```

    ## Use instead
    ```python
    import torch

    @torch.no_grad()
    def evaluate(model, test_loader):
        model.eval()
        correct = 0
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct
    ```

    ## Fix safety
    The fix is unsafe: it switches gradients off in the whole function or loop, and something that
    the rule cannot see may need them there.

    ## References
    - [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html)
    - [torch.inference_mode](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html)
    """

    code = "TLM003"
    severity = Severity.WARNING
    scout = SWITCHES_TO_EVALUATION | EVALUATES
    help = "run it under `with torch.no_grad():` or decorate the function with `@torch.no_grad()`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for blame in wrong_evaluations(file, self.scout, _builds_graph, by_model=False):
            yield self.report(blame.node, _message(blame), repair=_repair(blame))


def _builds_graph(found: ForwardPass, starts_here: bool) -> bool | None:
    is_loop = evaluation_loop(found) is not None
    if not is_loop and (found.event.file.is_unit_test or not _is_switched_here(found)):
        return None
    if found.moment.gradients is False:
        return False
    # Where a loop around it trains, the caller cannot have switched gradients off.
    is_sure = starts_here or any(trains(loop) for loop in found.moment.loops)
    if found.moment.gradients is None or not is_sure:
        return None
    if is_parameterless(found.model):
        return None
    if not is_loop and (is_handed_on(found) or is_shape_probe(found) or is_warm_up(found)):
        return None
    return None if may_need_graph(found) else True


def _is_switched_here(found: ForwardPass) -> bool:
    """Whether ``eval()`` stands in the same function, and no loop there trains.

    A loop that trains and switches on its laps has to have another one for the evaluation.
    """
    moment, file = found.moment, found.event.file
    if moment.mode != EVAL or moment.switch is None or moment.switched_in != moment.calls:
        return False
    function = file.index.enclosing_function(found.event.node)
    own_loops = [
        loop
        for loop in moment.loops
        if loop.file is file and file.index.enclosing_function(loop.node) is function
    ]
    since = [loop for loop in own_loops if loop in moment.loops[moment.loops_at_switch :]]
    return not any(trains(loop) for loop in since or own_loops)


def _message(blame: Blame) -> str:
    name = blame.found.model.hint or "model"
    others = "; other callers switch gradients off" if blame.others_are_right else ""
    if blame.is_call:
        return f"evaluates `{name}` with gradients on{others}"
    if blame.caller is not None:
        place = f"when called from {blame.caller}"
        return f"evaluating `{name}` builds an autograd graph {place}{others}"
    return f"evaluating `{name}` builds an autograd graph that nothing uses"


def _repair(blame: Blame) -> Repair | None:
    file, node = blame.found.event.file, blame.node
    if blame.is_call or blame.caller is not None:
        return None
    function, loop = file.index.enclosing_function(node), evaluation_loop(blame.found)
    no_grad = "torch.no_grad()"
    if function is not None and not speaks_of_gradients(file.segment(function)):

        def decorate(editor: Editor) -> None:
            editor.add_decorator(function, no_grad)
            editor.ensure_import("import torch")

        return Repair(f"decorate with `@{no_grad}`", Applicability.UNSAFE, decorate)
    statement = loop.node if loop is not None else file.index.statement(node)
    if not isinstance(statement, (ast.For, ast.AsyncFor, ast.Assign, ast.Expr)):
        return None

    def wrap(editor: Editor) -> None:
        editor.wrap_statements([statement], f"with {no_grad}:")
        editor.ensure_import("import torch")

    return Repair(f"wrap in `with {no_grad}`", Applicability.UNSAFE, wrap)
