import torch
from torch import nn
from torch.nn import functional as F


def carried(chunks, optimizer):
    lstm = nn.LSTM(8, 8)
    state = None
    for x, y in chunks:
        optimizer.zero_grad()
        output, state = lstm(x, state)  # expect: hidden-state-not-detached
        F.mse_loss(output, y).backward()
        optimizer.step()


def carried_pair(chunks, optimizer):
    lstm = nn.LSTM(8, 8)
    h, c = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
    for x, y in chunks:
        optimizer.zero_grad()
        output, (h, c) = lstm(x, (h, c))  # expect: hidden-state-not-detached
        F.mse_loss(output, y).backward()
        optimizer.step()


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 8)
        self.head = nn.Linear(8, 100)

    def forward(self, x, hidden):
        output, hidden = self.rnn(x, hidden)
        return self.head(output), hidden


def own_network(chunks):
    network = Language()
    optimizer = torch.optim.Adam(network.parameters())
    for epoch in range(3):
        hidden = torch.zeros(1, 2, 8)
        for x, y in chunks:
            optimizer.zero_grad()
            logits, hidden = network(x, hidden)  # expect: hidden-state-not-detached
            F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
            optimizer.step()


def detached(chunks, optimizer):
    lstm = nn.LSTM(8, 8)
    state = None
    for x, y in chunks:
        optimizer.zero_grad()
        output, state = lstm(x, state)
        state = tuple(part.detach() for part in state)
        F.mse_loss(output, y).backward()
        optimizer.step()


def detached_in_place(chunks, optimizer):
    gru = nn.GRU(8, 8)
    hidden = torch.zeros(1, 2, 8)
    for x, y in chunks:
        optimizer.zero_grad()
        hidden.detach_()
        output, hidden = gru(x, hidden)
        F.mse_loss(output, y).backward()
        optimizer.step()


def repackage_hidden(state):
    return tuple(part.data for part in state)


def repackaged(chunks, optimizer):
    lstm = nn.LSTM(8, 8)
    state = None
    for x, y in chunks:
        optimizer.zero_grad()
        if state is not None:
            state = repackage_hidden(state)
        output, state = lstm(x, state)
        F.mse_loss(output, y).backward()
        optimizer.step()


def made_anew(chunks, optimizer):
    gru = nn.GRU(8, 8)
    for x, y in chunks:
        hidden = torch.zeros(1, 2, 8)
        optimizer.zero_grad()
        output, hidden = gru(x, hidden)
        F.mse_loss(output, y).backward()
        optimizer.step()


def through_time(sequences, optimizer):
    cell = nn.GRUCell(8, 8)
    for sequence, y in sequences:
        hidden, loss = torch.zeros(2, 8), 0
        for x in sequence:
            hidden = cell(x, hidden)
            loss = loss + hidden.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def not_kept(chunks, optimizer):
    gru = nn.GRU(8, 8)
    for x, y in chunks:
        optimizer.zero_grad()
        output, _ = gru(x)
        F.mse_loss(output, y).backward()
        optimizer.step()
