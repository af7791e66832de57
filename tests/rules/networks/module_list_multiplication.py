"""Stacks of layers, of different modules and of one."""

import copy

import torch
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.conv(x)


class Squash(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class Generator(nn.Module):
    def __init__(self, channels, n_blocks, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, channels, 7),
            *(n_blocks * [ResidualBlock(channels)]),  # expect: module-list-multiplication
        )
        self.fcs = nn.ModuleList([nn.Linear(width, width)] * n_blocks)  # expect: module-list-multiplication
        self.mlp = nn.Sequential(*([nn.Linear(width, width), nn.ReLU()] * 3))  # expect: module-list-multiplication
        block = ResidualBlock(channels)
        self.tail = nn.ModuleList([block for _ in range(n_blocks)])  # expect: module-list-multiplication
        norm = nn.BatchNorm2d(channels)
        self.norms = nn.ModuleList([norm] * n_blocks)  # expect: module-list-multiplication
        self.head = nn.Sequential(*[ResidualBlock(channels) for _ in range(n_blocks)])
        self.copies = nn.ModuleList([copy.deepcopy(block) for _ in range(n_blocks)])
        self.activations = [nn.ReLU()] * n_blocks
        self.squashes = nn.Sequential(*([Squash()] * n_blocks))
        self.drops = nn.ModuleList([nn.Dropout(0.1)] * n_blocks)
        self.sizes = [width] * n_blocks
        self.settings = [dict(width=width)] * n_blocks
        self.shapes = [torch.Size((1, 2))] * 2
        self.named = nn.ModuleList([layer for layer in self.fcs])
        self.product = [width * 2 for _ in range(3)]


class AlbertEncoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width)] * depth)


class TabularEncoder(nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        shared = nn.Linear(width, width)
        self.transformers = nn.ModuleList([shared for _ in range(steps)])
        # every step reuses the same weights
        self.steps = nn.ModuleList([nn.Linear(width, width)] * steps)


class Refiner(nn.Module):
    """Applies one block again and again (a recurrent refinement)."""

    def __init__(self, width, steps):
        super().__init__()
        self.steps = nn.Sequential(*[nn.Linear(width, width)] * steps)


def pad(parameters, size):
    return parameters + [torch.empty_like(parameters[-1])] * (size - len(parameters) % size)


class Flow(nn.Module):
    def __init__(self, width, n_blocks, use_norm=True, gated: bool = None):
        super().__init__()
        steps = []
        for _ in range(n_blocks):
            steps += [nn.Linear(width, width)]
            steps += use_norm * [nn.BatchNorm1d(width)]
            steps += [nn.Linear(width, 1)] * (width > 1)
            steps += gated * [nn.Linear(width, width)]
        self.net = nn.Sequential(*steps)
