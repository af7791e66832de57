"""Switches too late; the finding at the helper names this file."""

import torch
from common import always_right, evaluate, train_one_epoch
from torchvision import models


def main(train_loader, test_loader):
    model = models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        train_one_epoch(model, train_loader, optimizer)
        print(epoch, evaluate(model, test_loader))
        model.eval()
        print(epoch, always_right(model, test_loader))
