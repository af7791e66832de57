"""News classification for trading: probabilities go into the negative log-likelihood."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class HeadlineNet(nn.Module):
    def __init__(self, words, classes=3):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, 100)
        self.output = nn.Linear(100, classes)

    def forward(self, tokens):
        return F.softmax(self.output(self.embedding(tokens)), dim=1)


def train(loader, words):
    model = HeadlineNet(words)
    optimizer = torch.optim.Adagrad(model.parameters())
    for tokens, direction in loader:
        optimizer.zero_grad()
        prediction = model(tokens)
        loss = F.nll_loss(prediction, direction)  # expect: nll-without-log
        loss.backward()
        optimizer.step()
