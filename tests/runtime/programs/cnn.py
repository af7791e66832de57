"""Small image classifier: convolutions, batch norm, in-place ReLU, log_softmax and NLL."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.randn(384, 1, 16, 16)
labels = torch.arange(384) % 10
images[torch.arange(384), 0, labels, labels] += 4
train_loader = DataLoader(
    TensorDataset(images[:320], labels[:320]), batch_size=32, shuffle=True, drop_last=True
)
val_loader = DataLoader(TensorDataset(images[320:], labels[320:]), batch_size=32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(0.25)
        self.head = nn.Linear(32 * 16, 10)

    def forward(self, x):
        x = self.features(x).flatten(1)
        x = self.head(self.dropout(x))
        return F.log_softmax(x, dim=1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
for epoch in range(4):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            val_loss += F.nll_loss(model(x), y, reduction="sum").item()
    print("val", val_loss / 64)
