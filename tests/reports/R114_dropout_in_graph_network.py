"""A graph network whose dropout stays on in evaluation."""

import torch
import torch.nn.functional as F
from torch import nn


class GraphConvolution(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = nn.Linear(inside, outside)

    def forward(self, x, adjacency):
        return torch.spmm(adjacency, self.linear(x))


class GraphNetwork(nn.Module):
    def __init__(self, features, hidden, classes, dropout=0.5):
        super().__init__()
        self.first = GraphConvolution(features, hidden)
        self.second = GraphConvolution(hidden, classes)
        self.dropout = dropout

    def forward(self, x, adjacency):
        x = F.relu(self.first(x, adjacency))
        x = F.dropout(x, p=self.dropout)  # expect: functional-dropout-no-training
        return F.log_softmax(self.second(x, adjacency), dim=1)
