"""Self-supervised learning: a linear probe freezes the parameters, not the statistics."""

import torch
from torch import nn
from torchvision import models


def linear_probe(loader, classes: int, epochs: int) -> None:
    encoder = models.resnet18()
    head = nn.Linear(1000, classes)
    encoder.requires_grad_(False)  # expect: frozen-bn-stats-drift
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        encoder.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(encoder(x)), y).backward()
            optimizer.step()
