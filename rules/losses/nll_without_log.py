from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.losses import NLL
from trainlint.analysis.loss_calls import LOSS_CALL, SquashedInput, squashed_inputs
from trainlint.finding import Applicability, Severity
from trainlint.fixing.activations import in_log_space
from trainlint.rule import Report, Rule


class NllWithoutLog(Rule):
    """The negative log-likelihood loss gets probabilities or logits where it expects logarithms.

    ## What it does
    Reports an `nll_loss` or `NLLLoss` whose input has certainly been through softmax or sigmoid, or
    comes straight out of a linear layer.

    ## Why is this bad?
    The loss only picks `-input[target]`; it takes no logarithm. With probabilities it lies between
    -1 and 0 and its gradients are tiny; with logits it has no lower bound.

    ## Example
    ```python
    import torch.nn.functional as F

    def training_step(model, x, y):
        return F.nll_loss(F.softmax(model(x), dim=1), y)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F

    def training_step(model, x, y):
        return F.nll_loss(F.log_softmax(model(x), dim=1), y)
    ```

    ## Fix safety
    The fix is safe where the softmax is the loss's own argument: it becomes `log_softmax`. Where it
    stands elsewhere the fix is unsafe: other code may rely on probabilities.

    ## References
    - [torch.nn.NLLLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html)
    """

    code = "TLL003"
    severity = Severity.ERROR
    scout = LOSS_CALL
    help = "use `log_softmax` before this loss, or `cross_entropy` on the logits"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in squashed_inputs(file, (NLL,), ("softmax", "sigmoid", "linear")):
            yield self.report(found.node, _message(found, file), repair=in_log_space(found, file))


def _message(found: SquashedInput, file: FileModel) -> str:
    place = found.activation.place(file)
    if found.activation.name == "linear":
        return (
            "this loss expects log-probabilities, but its input comes straight out of the linear "
            f"layer of {place}: the loss has no lower bound"
        )
    return (
        "this loss expects log-probabilities, but its input has been through "
        f"{found.activation.name} ({place}): the loss is negative and gradients are tiny"
    )
