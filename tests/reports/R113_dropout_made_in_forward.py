"""A scene classifier that makes its dropout layer in every forward pass."""

from torch import nn
from torch.nn import functional as F


class SceneClassifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Conv2d(3, 32, 3)
        self.head = nn.Linear(32, classes)

    def forward(self, images):
        x = F.relu(self.features(images)).mean((2, 3))
        x = nn.Dropout(p=0.5)(x)  # expect: module-in-forward
        return self.head(x)
