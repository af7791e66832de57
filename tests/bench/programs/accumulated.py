"""Gradients of several micro-batches a step, in a trainer class; a schedule that counts epochs."""

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, words, tags, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(width, tags)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(self.dropout(states))


class Trainer:
    def __init__(self, model, train_loader, val_loader, accumulation_steps=4):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.accumulation_steps = accumulation_steps
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.scheduler = StepLR(self.optimizer, step_size=3, gamma=0.5)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        self.optimizer.zero_grad()
        for index, (tokens, tags) in enumerate(self.train_loader):
            logits = self.model(tokens)
            loss = self.criterion(logits.flatten(0, 1), tags.flatten())
            total += loss.item()
            loss = loss / self.accumulation_steps
            loss.backward()
            is_last = index + 1 == len(self.train_loader)
            if (index + 1) % self.accumulation_steps == 0 or is_last:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = total = 0
        for tokens, tags in self.val_loader:
            right += (self.model(tokens).argmax(-1) == tags).sum().item()
            total += tags.numel()
        return right / total

    def fit(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch()
            self.scheduler.step()
            print(epoch, loss, self.evaluate())


def main():
    torch.manual_seed(0)
    tokens = torch.randint(30, (320, 12))
    tags = (tokens + tokens.roll(1, dims=1)) % 3
    tags[:, 0] = 0
    train_set = TensorDataset(tokens[:256], tags[:256])
    val_set = TensorDataset(tokens[256:], tags[256:])
    trainer = Trainer(
        Tagger(30, 3, 32),
        DataLoader(train_set, batch_size=16, shuffle=True),
        DataLoader(val_set, batch_size=64),
    )
    trainer.fit(8)


if __name__ == "__main__":
    main()
