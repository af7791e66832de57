"""A node classifier whose loss wrapper squashes the scores before cross entropy."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class NodeLoss(nn.Module):
    def __init__(self, weight=None):
        super().__init__()
        self.weight = weight

    def forward(self, scores, labels):
        probabilities = F.softmax(scores, dim=-1)
        return F.cross_entropy(  # expect: softmax-before-cross-entropy
            probabilities, labels, weight=self.weight
        )


def fit(model, features, labels, mask, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = NodeLoss()
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(model(features)[mask], labels[mask]).backward()
        optimizer.step()
