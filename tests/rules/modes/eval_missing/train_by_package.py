"""Right before the end, where the model is back in train mode."""

import torch
from helpers import accuracy_of
from torch.nn import functional as F
from torchvision import models


def main(train_loader, test_loader):
    model = models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        print(epoch, accuracy_of(model, test_loader))
        model.train()
    print(accuracy_of(model, test_loader))  # expect: eval-missing
