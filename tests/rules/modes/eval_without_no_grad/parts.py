"""Parts of one model in one loop are one evaluation; layers without weights build no graph."""

import torch
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.users = nn.Linear(width, width)
        self.films = nn.Linear(width, width)


def rank(test_loader):
    model = TwoTowers(8)
    model.eval()
    scores = []
    for user, film in test_loader:
        users = model.users(user)  # expect: eval-without-no-grad
        films = model.films(film)
        scores.append((users * films).sum(1).tolist())
    return scores


def show_dropout():
    drop = nn.Dropout(0.5)
    x = torch.ones(8)
    drop.eval()
    print(drop(x))
