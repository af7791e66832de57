import torch.nn as nn


class WeightedLoss(nn.Module):
    """Logits come in: what its callers give it is their business."""

    def __init__(self):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss(reduction="none")

    def forward(self, logits, target, weight):
        return (self.criterion(logits, target) * weight).mean()
