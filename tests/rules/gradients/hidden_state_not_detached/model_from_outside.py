"""The model is a parameter, and the file has one network that takes a state."""

import torch
from torch import nn
from torch.nn import functional as F


class WordModel(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.recurrent = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, tokens, state=None):
        features, state = self.recurrent(self.embedding(tokens), state)
        return self.out(features), state


def model_from_outside(model, chunks, optimizer):
    for _ in range(10):
        state = None
        for tokens, targets in chunks:
            optimizer.zero_grad()
            logits, state = model(tokens, state)  # expect: hidden-state-not-detached
            F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
            optimizer.step()


def cut_between_chunks(model, chunks, optimizer):
    state = None
    for tokens, targets in chunks:
        optimizer.zero_grad()
        logits, state = model(tokens, state)
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
        state = tuple(part.detach() for part in state)
