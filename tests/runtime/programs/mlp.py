"""Classifier on synthetic vectors: MLP with dropout, validation, best state, checkpoint."""

import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
inputs = torch.randn(640, 20)
labels = (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long()
train_set, val_set = random_split(TensorDataset(inputs, labels), [512, 128])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 64)
        self.second = nn.Linear(64, 64)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = self.drop(F.relu(self.second(x)))
        return self.head(x)


def half(module):
    """bf16 weights; used by a mutation."""
    module.register_forward_pre_hook(lambda _, given: (given[0].bfloat16(),))
    return module.bfloat16()


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4 * len(train_loader))
best, best_state = 0.0, None
for epoch in range(4):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        output = model(x)
        loss = F.cross_entropy(output, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
        print("loss", repr(loss.item()))
    model.eval()
    with torch.no_grad():
        correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    accuracy = correct / len(val_set)
    if accuracy >= best:
        best, best_state = accuracy, copy.deepcopy(model.state_dict())
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "epoch": epoch,
        },
        sys.argv[1] if len(sys.argv) > 1 else "mlp.pt",
    )
