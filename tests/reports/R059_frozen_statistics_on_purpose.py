"""Detection: the pretrained network trains in eval mode, so that batch norm keeps its statistics."""
# never: train-not-restored

import torch
from torch import nn
from torchvision import models


def validate(model, val_loader):
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)


def main(train_loader, val_loader, epochs: int):
    model = models.resnet50(weights="DEFAULT")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for epoch in range(epochs):
        model.eval()  # keeps the running statistics of the pretraining
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        print(epoch, validate(model, val_loader))
