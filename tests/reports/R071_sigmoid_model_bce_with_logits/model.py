import torch
import torch.nn as nn


class ClickModel(nn.Module):
    def __init__(self, users, items, width=16):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.items = nn.Embedding(items, width)
        self.tower = nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user, item):
        pair = torch.cat([self.users(user), self.items(item)], dim=-1)
        return torch.sigmoid(self.tower(pair)).squeeze(-1)
