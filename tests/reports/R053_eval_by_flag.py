"""Protein contacts: ``train(mode=False)`` is ``eval()``."""
# never: eval-missing

import torch
from torch import nn


class Contacts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 2))

    def forward(self, x):
        return self.layers(x)


def switch(net: nn.Module, training: bool) -> None:
    net.train(mode=training)


def test(net: Contacts, test_loader):
    net.train(mode=False)
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (net(x).argmax(1) == y).sum().item()
    switch(net, training=True)
    return correct
