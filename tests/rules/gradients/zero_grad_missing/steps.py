"""Helpers that leave it to their callers to clear the gradients."""

from torch.nn import functional as F


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()  # expect: zero-grad-missing
    optimizer.step()
    return loss.item()


def careful_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def used_once(model, optimizer, x, y):
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
