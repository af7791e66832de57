"""Where all scripts get their vocoder from."""

import torch
from torch import nn


class Vocoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(80, width, 3), nn.BatchNorm1d(width), nn.Conv1d(width, 1, 3))

    def forward(self, mel):
        return self.layers(mel)


def load_model(path: str, device: str) -> Vocoder:
    model = Vocoder(256)
    model.load_state_dict(torch.load(path, map_location=device, weights_only=True))
    return model.to(device).eval()
