"""Freezing layers, spelled rightly and wrongly."""

from dataclasses import dataclass

import torch
import torchvision
from torch import nn

model = torchvision.models.resnet50(weights="DEFAULT")
for parameter in model.parameters():
    parameter.require_grad = False  # expect: requires-grad-typo
for name, p in model.named_parameters():
    if not name.startswith("fc"):
        p.requires_grads = False  # expect: requires-grad-typo
model.fc.weight.require_grad = True  # expect: requires-grad-typo
model.layer4.required_grad = True  # expect: requires-grad-typo

for parameter in model.parameters():
    parameter.requires_grad = False
model.fc.requires_grad_(True)


class PositionalEncoding(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        table = torch.zeros(length, width)
        table.require_grads = False  # expect: requires-grad-typo
        self.register_buffer("table", table)
        self.scale = nn.Parameter(torch.ones(1), require_grad=False)  # expect: requires-grad-typo

    def forward(self, x):
        return x * self.scale + self.table[: x.size(1)]


def unfreeze_all(net):
    for parameter in net.parameters():
        parameter.required_grads = True  # expect: requires-grad-typo
    probe = torch.ones(3, required_grad=True)  # expect: requires-grad-typo
    return probe


@dataclass
class Settings:
    learning_rate: float = 1e-3
    requires_gradient: bool = True


def configure(settings, args):
    settings.requires_gradient = False
    args.require_gradient = True
    options = {"require_gradient": True}
    return options, settings


def loss_of(output, targets):
    mel_target, gate_target = targets
    mel_target.require_grads = False  # expect: requires-grad-typo
    return (output - mel_target).abs().mean() + gate_target.mean()


class Attack:
    def __init__(self, requires_gradients=True):
        self.requires_gradients = requires_gradients

    def run(self, sample):
        sample.requires_gradients = self.requires_gradients
        return sample
