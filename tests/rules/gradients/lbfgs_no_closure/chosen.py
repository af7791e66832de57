"""A trainer that steps LBFGS as it steps Adam."""

import torch


class Trainer:
    def __init__(self, network, settings):
        self.network = network
        if settings["optimizer"] == "lbfgs":
            self.optimizer = torch.optim.LBFGS(network.parameters(), max_iter=20)
        else:
            self.optimizer = torch.optim.Adam(network.parameters())

    def train(self, criterion, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            criterion(self.network(x), y).backward()
            self.optimizer.step()  # expect: lbfgs-no-closure
