"""A language model with a recurrent memory that is carried over the segments of a document."""

import torch
from torch import nn
from torch.nn import functional as F


class MemoryModel(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, memory):
        output, memory = self.memory(self.embed(tokens), memory)
        return self.head(output), memory


def train(documents):
    model = MemoryModel(1000, 64)
    optimizer = torch.optim.Adam(model.parameters())
    for document in documents:
        memory = torch.zeros(1, len(document), 64)
        for segment in document.split(128, dim=1):
            optimizer.zero_grad()
            logits, memory = model(segment[:, :-1], memory)  # expect: hidden-state-not-detached
            loss = F.cross_entropy(logits.flatten(0, 1), segment[:, 1:].flatten())
            loss.backward()
            optimizer.step()
