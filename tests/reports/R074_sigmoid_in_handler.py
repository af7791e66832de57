"""A membership attack model: the handler adds a sigmoid to a loss that has one."""

import torch
import torch.nn as nn


class AttackHandler:
    def __init__(self, net):
        self.net = net
        self.sigmoid = nn.Sigmoid()
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def train_step(self, features, is_member):
        self.optimizer.zero_grad()
        output = self.sigmoid(self.net(features))
        loss = self.criterion(output, is_member)  # expect: sigmoid-before-bce-logits
        loss.backward()
        self.optimizer.step()
        return loss.item()
