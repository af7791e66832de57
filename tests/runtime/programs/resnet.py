"""Residual network with gradient accumulation, an EMA copy and a OneCycle schedule."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.randn(256, 3, 16, 16)
labels = torch.arange(256) % 5
images += labels[:, None, None, None] * 0.3
train_loader = DataLoader(TensorDataset(images[:192], labels[:192]), batch_size=8, shuffle=True)
val_loader = DataLoader(TensorDataset(images[192:], labels[192:]), batch_size=8)


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)
        self.skip = nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
        )
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.act(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return self.act(out + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Block(8, 16, 2), Block(16, 32, 2))
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


model = ResNet()
ema = copy.deepcopy(model).requires_grad_(False)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
accumulate = 2
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.05, total_steps=3 * len(train_loader) // accumulate
)
for epoch in range(3):
    model.train()
    optimizer.zero_grad()
    for index, (x, y) in enumerate(train_loader):
        loss = criterion(model(x), y) / accumulate
        loss.backward()
        if (index + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            with torch.no_grad():
                for mean, live in zip(ema.state_dict().values(), model.state_dict().values()):
                    if mean.is_floating_point():
                        mean.lerp_(live, 0.1)
                    else:
                        mean.copy_(live)
    model.eval()
    ema.eval()
    with torch.no_grad():
        hits = sum((ema(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print("accuracy", hits / 64)
