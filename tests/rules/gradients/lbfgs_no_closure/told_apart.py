"""A trainer that knows what it steps."""

import torch


def train(network, criterion, batches, settings):
    if settings["optimizer"] == "lbfgs":
        optimizer = torch.optim.LBFGS(network.parameters(), max_iter=20)
    else:
        optimizer = torch.optim.Adam(network.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        criterion(network(x), y).backward()
        if not isinstance(optimizer, torch.optim.LBFGS):
            optimizer.step()
