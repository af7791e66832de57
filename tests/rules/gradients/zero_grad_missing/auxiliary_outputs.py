"""A head whose outputs are dicts that the caller adds to, under a condition."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 10)

    @torch.no_grad()
    def forward(self, features):
        logits = self.linear(features)
        return [{"scores": score, "labels": label} for score, label in zip(logits, logits)]


def train(model, loader, named, key):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    heads = {"boxes": Head(), "panoptic": Head()}
    for images, labels in loader:
        features = model(images)
        nn.functional.cross_entropy(features, labels).backward()  # expect: zero-grad-missing
        optimizer.step()
        results = heads[key](features)
        if named is not None:
            for number, label in enumerate(labels):
                results[number]["image"] = label
                results[number]["name"] = named[number]
