"""Never clears; the finding at the helper names this file."""

import torch
from steps import train_step
from torchvision import models


def main(loader):
    model = models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        print(train_step(model, optimizer, x, y))
