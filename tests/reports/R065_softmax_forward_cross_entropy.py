"""Human activity recognition: forward ends in softmax, the loss is cross entropy."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ActivityClassifier(nn.Module):
    def __init__(self, sensors=9, hidden=64, activities=6):
        super().__init__()
        self.lstm = nn.LSTM(sensors, hidden, batch_first=True)
        self.dense = nn.Linear(hidden, activities)

    def forward(self, window):
        states, _ = self.lstm(window)
        return F.softmax(self.dense(states[:, -1]), dim=1)


def train(loader, epochs):
    net = ActivityClassifier()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for window, activity in loader:
            optimizer.zero_grad()
            loss = criterion(net(window), activity)  # expect: softmax-before-cross-entropy
            loss.backward()
            optimizer.step()
