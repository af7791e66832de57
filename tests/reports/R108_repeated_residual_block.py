"""The book's residual network: the same block, not as many as were meant."""

import torch
from torch import nn


class ResBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x))) + x


class DeepNet(nn.Module):
    def __init__(self, channels=32, n_blocks=10):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.resblocks = nn.Sequential(
            *(n_blocks * [ResBlock(channels)])  # expect: module-list-multiplication
        )
        self.fc = nn.Linear(channels, 2)

    def forward(self, x):
        return self.fc(self.resblocks(torch.relu(self.stem(x))).mean((2, 3)))
