from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.losses import BCE_WITH_LOGITS, FOCAL
from trainlint.analysis.loss_calls import LOSS_CALL, SquashedInput, squashed_inputs
from trainlint.finding import Applicability, Severity
from trainlint.fixing.activations import without_activation
from trainlint.rule import Report, Rule


class SigmoidBeforeBceLogits(Rule):
    """A loss that applies sigmoid itself gets the output of a sigmoid.

    ## What it does
    Follows the model's output, through `forward` methods, layers and files, and reports a
    `BCEWithLogitsLoss`, `binary_cross_entropy_with_logits` or `sigmoid_focal_loss` whose input has
    certainly been through sigmoid or softmax.

    ## Why is this bad?
    The second sigmoid maps values between 0 and 1 to values between 0.5 and 0.73: no prediction is
    ever below 0.5, and the loss cannot go below 0.31 for positive and 0.69 for negative targets.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    def training_step(model, x, y):
        probability = torch.sigmoid(model(x))
        return F.binary_cross_entropy_with_logits(probability, y)
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F

    def training_step(model, x, y):
        logits = model(x)
        return F.binary_cross_entropy_with_logits(logits, y)
    ```

    ## Fix safety
    The fix is safe where the sigmoid is the loss's own argument. Where it stands elsewhere the fix
    is unsafe: other code may rely on probabilities.

    ## References
    - [torch.nn.BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html)
    """

    code = "TLL002"
    severity = Severity.ERROR
    scout = LOSS_CALL
    help = "give the loss the logits, or use `BCELoss` on the probabilities"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in squashed_inputs(file, (BCE_WITH_LOGITS, FOCAL), ("sigmoid", "softmax")):
            yield self.report(
                found.node, _message(found, file), repair=without_activation(found, file)
            )


def _message(found: SquashedInput, file: FileModel) -> str:
    activation = found.activation
    return (
        f"this loss applies sigmoid itself, but its input has been through {activation.name} "
        f"already ({activation.place(file)}): no prediction can fall below 0.5"
    )
