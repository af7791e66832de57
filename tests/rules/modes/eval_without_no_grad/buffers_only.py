"""A transform that holds buffers has nothing to build a graph for."""

import torch
from torch import nn


class Spectrogram(nn.Module):
    def __init__(self, bins, filters):
        super().__init__()
        self.bins = bins
        self.register_buffer("filters", filters)
        self.register_buffer("window", torch.hann_window(bins))

    def forward(self, audio):
        spectrum = torch.stft(audio, self.bins, window=self.window, return_complex=True).abs()
        return self.squash(self.filters @ spectrum)

    def squash(self, energy):
        return torch.log10(energy.clamp(min=1e-5))


class Filters(nn.Module):
    def __init__(self, bins, filters):
        super().__init__()
        self.filters = nn.Parameter(filters)
        self.register_buffer("window", torch.hann_window(bins))

    def forward(self, spectrum):
        return torch.log10((self.filters @ spectrum).clamp(min=1e-5))


def spectra(test_loader, filters):
    transform = Spectrogram(512, filters).eval()
    found = []
    for audio in test_loader:
        found.append(transform(audio))
    return found


def learned_spectra(test_loader, filters):
    transform = Filters(512, filters).eval()
    found = []
    for audio in test_loader:
        found.append(transform(audio))  # expect: eval-without-no-grad
    return found
