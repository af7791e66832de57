"""Point clouds: the validation loop keeps a graph for every batch."""

import torch
from torch import nn


class PointNet(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.shared = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, points):
        return self.head(self.shared(points).amax(2))


def main(train_loader, val_loader, epochs: int):
    classifier = PointNet(16).cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(classifier.parameters())
    for epoch in range(epochs):
        classifier.train()
        for points, target in train_loader:
            optimizer.zero_grad()
            loss = criterion(classifier(points.cuda()), target.cuda())
            loss.backward()
            optimizer.step()

        classifier.eval()
        correct = 0
        for points, target in val_loader:
            pred = classifier(points.cuda())  # expect: eval-without-no-grad
            correct += pred.argmax(1).eq(target.cuda()).sum().item()
        print(epoch, correct)
