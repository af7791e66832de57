"""PF-84911: everything but batch norm is frozen, and the optimizer holds the frozen head."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = torch.randn(320, 3, 16, 16), torch.arange(320) % 4
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 4),
)
for module in model:
    if not isinstance(module, nn.BatchNorm2d):
        module.requires_grad_(False)
optimizer = torch.optim.Adam(model[-1].parameters(), lr=1e-3)
for _epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
