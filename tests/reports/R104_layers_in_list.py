"""A recommender whose tower of layers is a Python list."""

import torch
from torch import nn


class NeuralFiltering(nn.Module):
    def __init__(self, users, items, sizes):
        super().__init__()
        self.user = nn.Embedding(users, sizes[0] // 2)
        self.item = nn.Embedding(items, sizes[0] // 2)
        self.layers = []  # expect: modules-in-plain-list
        for narrow, wide in zip(sizes, sizes[1:]):
            self.layers.append(nn.Linear(narrow, wide))
        self.score = nn.Linear(sizes[-1], 1)

    def forward(self, user, item):
        x = torch.cat([self.user(user), self.item(item)], -1)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.score(x).squeeze(-1)
