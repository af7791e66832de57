"""Switches before both helpers."""

import torch
from common import always_right, evaluate, train_one_epoch
from torchvision import models


def main(train_loader, test_loader):
    model = models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        train_one_epoch(model, train_loader, optimizer)
        model.eval()
        print(epoch, evaluate(model, test_loader))
        model.eval()
        print(epoch, always_right(model, test_loader))
