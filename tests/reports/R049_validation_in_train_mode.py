"""Segmentation of scans: validation switches gradients off and leaves dropout on."""

import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up = nn.Sequential(nn.Dropout2d(0.3), nn.Conv2d(16, 2, 1))

    def forward(self, scan):
        return self.up(self.down(scan))


def validate(model, valid_loader, criterion, device):
    losses = []
    with torch.no_grad():
        for scan, mask in valid_loader:
            output = model(scan.to(device))  # expect: eval-missing
            losses.append(criterion(output, mask.to(device)).item())
    return sum(losses) / len(losses)


def main(train_loader, valid_loader, device):
    model = Segmenter().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(50):
        model.train()
        for scan, mask in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(scan.to(device)), mask.to(device))
            loss.backward()
            optimizer.step()
        print(epoch, validate(model, valid_loader, criterion, device))
