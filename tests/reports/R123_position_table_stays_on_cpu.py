import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, width, length, device):
        super().__init__()
        encoding = torch.zeros(length, width)
        position = torch.arange(length).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * -(math.log(10000.0) / width))
        encoding[:, 0::2] = torch.sin(position * rate)
        encoding[:, 1::2] = torch.cos(position * rate)
        encoding.to(device)  # expect: to-result-discarded
        self.encoding = encoding.unsqueeze(0)

    def forward(self, tokens):
        return tokens + self.encoding[:, : tokens.size(1)]
