"""A model of regulatory sequences, built from a trunk and heads."""

from torch import nn


class Trunk(nn.Module):
    def __init__(self, channels, depth):  # expect: missing-super-init
        self.stem = nn.Conv1d(4, channels, 15, padding=7)
        self.blocks = nn.ModuleList([nn.Conv1d(channels, channels, 5, padding=2) for _ in range(depth)])

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return x


class Profile(nn.Module):
    def __init__(self, trunk, channels, tracks):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Conv1d(channels, tracks, 1)

    def forward(self, x):
        return self.head(self.trunk(x))
