"""What the scripts of this project import whole."""

import os

import torch
from torch import nn


def load(path: str, device: str) -> nn.Module:
    return torch.load(os.path.expanduser(path), map_location=device, weights_only=False)
