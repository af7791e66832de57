"""A small training script with bugs that do not crash. `make demo` finds them."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Net(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.stem = nn.Linear(784, width)
        self.blocks = [nn.Linear(width, width) for _ in range(depth)]
        self.head = nn.Linear(width, 10)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = F.relu(self.stem(x.flatten(1)))
        for block in self.blocks:
            x = F.relu(block(x))
        x = F.dropout(self.drop(x), 0.1)
        return F.softmax(self.head(x), dim=1)


def train_one_epoch(model, loader, criterion, optimizer):
    for images, labels in loader:
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad


def validate(model, loader):
    correct = 0
    with torch.no_grad():
        for images, labels in loader:
            correct += (model(images).argmax(1) == labels).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--augment", type=bool, default=True)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    transform = transforms.ToTensor()
    train_set = datasets.MNIST("data", train=True, download=True, transform=transform)
    test_set = datasets.MNIST("data", train=False, transform=transform)
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)

    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        train_one_epoch(model, train_loader, criterion, optimizer)
        print(f"epoch {epoch}: accuracy {validate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
