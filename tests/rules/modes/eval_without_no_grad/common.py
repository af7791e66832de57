"""What the scripts of this project import whole."""

import os

import torch
from torch import nn


def smart_inference_mode(new: bool = True):
    def decorate(function):
        return (torch.inference_mode if new else torch.no_grad)()(function)

    return decorate


def load(path: str, device: str) -> nn.Module:
    return torch.load(os.path.expanduser(path), map_location=device, weights_only=False)
