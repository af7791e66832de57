import torch
from torch import nn


class DetectionPrompt(nn.Module):
    def __init__(self, queries, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.anchors = nn.Parameter(torch.rand(queries, 2)).cuda()  # expect: parameter-moved-nonleaf
        self.embedding = nn.Parameter(torch.rand(queries, width))

    def forward(self, features):
        return self.project(features + self.embedding), self.anchors.sigmoid()
