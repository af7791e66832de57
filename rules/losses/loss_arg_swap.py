from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.losses import KL_DIV
from trainlint.analysis.loss_calls import LOSS_CALL, LossCall
from trainlint.analysis.loss_sides import (
    Side,
    are_classes_first,
    evidence_of,
    is_detached_output,
)
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule


class LossArgSwap(Rule):
    """A loss is called with the target first and the prediction second.

    ## What it does
    Reports a call of a torch loss whose first argument is the target and whose second is the
    prediction. Each side needs its own evidence, from where the tensor comes from (a model, a
    batch) or from its name, and none that contradicts it.

    ## Why is this bad?
    KL divergence, binary cross entropy, cross entropy with soft targets, Poisson and Gaussian
    likelihoods and the margin losses are not symmetric: swapped, they train something else, without
    an error. Mean squared error, L1, smooth L1 and Huber give the same number and gradient either
    way, so there it is a warning: the call turns wrong when the loss is exchanged for one that is
    not symmetric, and reads wrong when the target carries a graph and must be detached.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    def training_step(model, x, y):
        probability = torch.sigmoid(model(x))
        return F.binary_cross_entropy(y, probability)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    def training_step(model, x, y):
        probability = torch.sigmoid(model(x))
        return F.binary_cross_entropy(probability, y)
    ```

    ## Fix safety
    The fix exchanges the two arguments. It is safe where the names of both say what they are,
    unsafe where only the data flow does.

    ## References
    - [Loss functions](https://docs.pytorch.org/docs/stable/nn.functional.html#loss-functions)
    """

    code = "TLL005"
    severity = Severity.ERROR
    scout = LOSS_CALL
    help = "pass the prediction first and the target second"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in file.loss_calls:
            if call.file is file and _is_positional(call) and _is_swapped(call):
                yield self.report(
                    call.node,
                    _message(call),
                    severity=Severity.WARNING if _may_be_symmetric(call) else Severity.ERROR,
                    repair=_repair(call),
                )


def _is_positional(call: LossCall) -> bool:
    given = call.node.args
    return len(given) > call.kind.target_position and not any(
        isinstance(item, ast.Starred) for item in given
    )


def _is_swapped(call: LossCall) -> bool:
    if None in call.alternatives or (call.kind is KL_DIV and _shows_its_space(call)):
        return False
    if _may_be_symmetric(call) and is_detached_output(call.input):
        return False
    if are_classes_first(call):
        return True
    first, second = evidence_of(call, 0), evidence_of(call, call.kind.target_position)
    if first.is_weak and second.by_flow is None:
        return False
    return first.side is Side.TARGET and second.side is Side.PREDICTION


def _shows_its_space(call: LossCall) -> bool:
    """Logarithms come first in a KL divergence; probabilities there are another rule's business."""
    first = call.node.args[0]
    is_log = isinstance(first, ast.Call) and "log" in ast.unparse(first.func)
    return is_log or call.input_activation is not None


def _may_be_symmetric(call: LossCall) -> bool:
    return any(kind is not None and kind.symmetric for kind in call.alternatives)


def _message(call: LossCall) -> str:
    target, prediction = call.node.args[0], call.node.args[call.kind.target_position]
    what = (
        f"`{call.kind.name}` is called with the target `{_shown(target)}` first and the prediction "
        f"`{_shown(prediction)}` second"
    )
    if _may_be_symmetric(call):
        return (
            f"{what}: the gradient is the same today, but it is wrong as soon as the loss is "
            "exchanged for one that is not symmetric, or the target carries a graph of its own"
        )
    return f"{what}: this loss is not symmetric"


def _shown(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _repair(call: LossCall) -> Repair:
    node, position = call.node, call.kind.target_position
    is_named = all(evidence_of(call, place).by_name is not None for place in (0, position))
    return Repair(
        "Exchange the two arguments",
        Applicability.SAFE if is_named else Applicability.UNSAFE,
        lambda editor: editor.swap_arguments(node, 0, position),
    )
