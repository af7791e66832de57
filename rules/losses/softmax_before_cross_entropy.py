from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.losses import CROSS_ENTROPY
from trainlint.analysis.loss_calls import LOSS_CALL, SquashedInput, squashed_inputs
from trainlint.finding import Applicability, Severity
from trainlint.fixing.activations import without_activation
from trainlint.rule import Report, Rule


class SoftmaxBeforeCrossEntropy(Rule):
    """Cross entropy gets probabilities where it expects logits.

    ## What it does
    Follows the model's output, through `forward` methods, layers and files, and reports a
    `cross_entropy` or `CrossEntropyLoss` whose input has certainly been through softmax or sigmoid.

    ## Why is this bad?
    Cross entropy applies log-softmax itself. With values between 0 and 1 as logits, the loss cannot
    go below log(e + C - 1) - 1 (0.55 for 3 classes, 1.46 for 10) and gradients are tiny: training
    works somewhat, so nobody notices.

    ## Example
    ```python
    import torch.nn as nn
    import torch.nn.functional as F

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return F.softmax(self.head(x), dim=1)

    def train(loader, optimizer):
        model = Classifier()
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    import torch.nn as nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(x)

    def train(loader, optimizer):
        model = Classifier()
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is safe where the softmax is the loss's own argument. Where it stands in the model the
    fix is unsafe: code that predicts may rely on probabilities.

    ## References
    - [torch.nn.CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html)
    """

    code = "TLL001"
    severity = Severity.ERROR
    scout = LOSS_CALL
    help = "give the loss the logits, and apply softmax only where probabilities are needed"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in squashed_inputs(file, (CROSS_ENTROPY,), ("softmax", "sigmoid")):
            yield self.report(
                found.node, _message(found, file), repair=without_activation(found, file)
            )


def _message(found: SquashedInput, file: FileModel) -> str:
    activation = found.activation
    return (
        f"cross entropy applies softmax itself, but its input has been through {activation.name} "
        f"already ({activation.place(file)}): the loss cannot get near 0 and gradients are tiny"
    )
