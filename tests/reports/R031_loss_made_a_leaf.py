"""Counting objects in images, with the error message about grad_fn silenced."""

import torch
from torch import nn


def train(model, loader, epochs):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        for images, counts in loader:
            predicted = torch.round(model(images)).data
            loss = criterion(predicted, counts)
            loss.requires_grad = True  # expect: loss-requires-grad-hack
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
