"""Clears before each call."""

import torch
from steps import careful_step, train_step, used_once
from torchvision import models


def main(loader):
    model = models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        train_step(model, optimizer, x, y)
    for x, y in loader:
        model.zero_grad()
        print(careful_step(model, optimizer, x, y))
    optimizer.zero_grad()
    used_once(model, optimizer, x, y)
