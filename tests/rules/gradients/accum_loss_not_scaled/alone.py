"""A script beside others that divide: nothing imports it, and it imports none of them."""

import torch
from common import network
from torch.nn import functional as F


def evaluate(model, loader):
    return sum(F.cross_entropy(model(x), y, reduction="sum").item() for x, y in loader)


def train(loader, accumulate):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: accum-loss-not-scaled
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
