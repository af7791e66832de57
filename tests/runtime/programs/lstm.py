"""Recurrent language model, sequence first, hidden state carried over, updates by SGD."""

import torch
from torch import nn

torch.manual_seed(0)
vocabulary, length, batch = 50, 16, 8
stream = (
    torch.randint(0, vocabulary, (batch, 2000)).sort(dim=1).values.t().contiguous() % vocabulary
)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 32)
        self.drop = nn.Dropout(0.1)
        self.lstm = nn.LSTM(32, 64)
        self.decoder = nn.Linear(64, vocabulary)

    def forward(self, tokens, state):
        output, state = self.lstm(self.drop(self.embedding(tokens)), state)
        return self.decoder(self.drop(output)), state


def get_batch(start):
    return stream[start : start + length], stream[start + 1 : start + 1 + length]


model = Model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for epoch in range(2):
    model.train()
    state = (torch.zeros(1, batch, 64), torch.zeros(1, batch, 64))
    for start in range(0, 1900, length):
        tokens, targets = get_batch(start)
        state = tuple(s.detach() for s in state)
        optimizer.zero_grad()
        output, state = model(tokens, state)
        loss = criterion(output.reshape(-1, vocabulary), targets.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
    print("loss", loss.item())
