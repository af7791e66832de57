from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.losses import KL_DIV
from trainlint.analysis.loss_calls import LOSS_CALL, SquashedInput, squashed_inputs
from trainlint.finding import Applicability, Severity
from trainlint.fixing.activations import in_log_space
from trainlint.rule import Report, Rule


class KlDivInputNotLog(Rule):
    """The first argument of KL divergence is not in log space.

    ## What it does
    Reports a `kl_div` or `KLDivLoss` whose input has certainly been through softmax or sigmoid, or
    comes straight out of a linear layer.

    ## Why is this bad?
    `kl_div(input, target)` computes `target * (log(target) - input)`: the input must be
    log-probabilities, the target probabilities. Two tensors of probabilities give a plausible
    number, often a negative one, that is no divergence.

    ## Example
    ```python
    import torch.nn.functional as F

    def distillation_loss(student, teacher, x):
        soft = F.softmax(teacher(x), dim=1)
        return F.kl_div(F.softmax(student(x), dim=1), soft, reduction="batchmean")
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F

    def distillation_loss(student, teacher, x):
        soft = F.softmax(teacher(x), dim=1)
        return F.kl_div(F.log_softmax(student(x), dim=1), soft, reduction="batchmean")
    ```

    ## Fix safety
    The fix is safe where the softmax is the loss's own argument: it becomes `log_softmax`. Where it
    stands elsewhere the fix is unsafe: other code may rely on probabilities.

    ## References
    - [torch.nn.functional.kl_div](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.kl_div.html)
    """

    code = "TLL004"
    severity = Severity.ERROR
    scout = LOSS_CALL
    help = "use `log_softmax` for the first argument, and plain probabilities for the second"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in squashed_inputs(file, (KL_DIV,), ("softmax", "sigmoid", "linear")):
            repair = None if _is_swapped(found) else in_log_space(found, file)
            yield self.report(found.node, _message(found, file), repair=repair)


def _is_swapped(found: SquashedInput) -> bool:
    target = found.call.target_activation
    return target is not None and target.name == "log_softmax"


def _message(found: SquashedInput, file: FileModel) -> str:
    place = found.activation.place(file)
    if _is_swapped(found):
        return (
            "`kl_div` is called the wrong way round: its first argument is the "
            f"{found.activation.name} of {place}, and the logarithm is taken of the second"
        )
    what = (
        f"comes straight out of the linear layer of {place}"
        if found.activation.name == "linear"
        else f"has been through {found.activation.name} ({place})"
    )
    return f"`kl_div` expects log-probabilities first, but its first argument {what}"
