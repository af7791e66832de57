"""The file's name holds the epoch at which the loop starts."""

import os

import torch
from torch import nn


class Trainer:
    def __init__(self, generator, args):
        self.generator = generator
        self.epoch = args.epoch
        self.epochs = args.epochs
        self.folder = args.folder
        self.optimizer = torch.optim.Adam(self.generator.parameters(), lr=1e-4)
        self.load()

    def load(self):
        path = os.path.join(self.folder, f"generator_{self.epoch - 1}.pth")
        if not os.path.exists(path):
            return
        self.generator.load_state_dict(
            torch.load(path, map_location="cpu")  # expect: resume-incomplete
        )

    def train(self, loader):
        for epoch in range(self.epoch, self.epochs):
            for low, high in loader:
                self.optimizer.zero_grad()
                nn.functional.l1_loss(self.generator(low), high).backward()
                self.optimizer.step()
            path = os.path.join(self.folder, f"generator_{epoch}.pth")
            torch.save(self.generator.state_dict(), path)


class FromFirstStage:
    """The number in the path is that of another training."""

    def __init__(self, generator, args):
        self.generator = generator
        self.epochs = args.epochs
        path = os.path.join(args.folder, f"generator_{args.pretraining_epoch}.pth")
        self.generator.load_state_dict(torch.load(path, map_location="cpu"))
        self.optimizer = torch.optim.Adam(self.generator.parameters(), lr=1e-4)

    def train(self, loader):
        for epoch in range(1, self.epochs):
            for low, high in loader:
                self.optimizer.zero_grad()
                nn.functional.l1_loss(self.generator(low), high).backward()
                self.optimizer.step()
