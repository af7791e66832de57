"""A whole network is frozen by mistake, and the error that says so is silenced."""

import torch
import torchvision
from torch import nn


def fine_tune(loader):
    model = torchvision.models.resnet50(weights="IMAGENET1K_V2")
    for parameter in model.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.Adam(model.fc.parameters())
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.requires_grad = True  # expect: loss-requires-grad-hack
        loss.backward()
        optimizer.step()
