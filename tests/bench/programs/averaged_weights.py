"""Weights averaged by hand and swapped in to evaluate; bfloat16; a schedule that counts batches."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class WeightAverage:
    """Exponential average of a model's weights."""

    def __init__(self, model, decay=0.98):
        self.model = model
        self.decay = decay
        self.average = [p.detach().clone() for p in model.parameters()]
        self.kept = []

    @torch.no_grad()
    def update(self):
        for mean, p in zip(self.average, self.model.parameters()):
            mean.lerp_(p, 1 - self.decay)

    @torch.no_grad()
    def copy_to(self):
        for mean, p in zip(self.average, self.model.parameters()):
            p.copy_(mean)

    @torch.no_grad()
    def store(self):
        self.kept = [p.detach().clone() for p in self.model.parameters()]

    @torch.no_grad()
    def restore(self):
        for old, p in zip(self.kept, self.model.parameters()):
            p.copy_(old)


def evaluate(model, loader, criterion):
    model.eval()
    total = 0.0
    with torch.inference_mode():
        for x, y in loader:
            total += criterion(model(x), y).item()
    return total / len(loader)


torch.manual_seed(0)
x = torch.randn(600, 12)
y = (x @ torch.randn(12, 3)).argmax(1)
train_loader = DataLoader(TensorDataset(x[:480], y[:480]), batch_size=24, shuffle=True)
val_loader = DataLoader(TensorDataset(x[480:], y[480:]), batch_size=60)

model = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, 3))
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
epochs = 5
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=1e-2, epochs=epochs, steps_per_epoch=len(train_loader)
)
ema = WeightAverage(model)
for epoch in range(epochs):
    model.train()
    total = 0.0
    for inputs, targets in train_loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(inputs), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        ema.update()
        total += loss.item()
    ema.store()
    ema.copy_to()
    val_loss = evaluate(model, val_loader, criterion)
    ema.restore()
    print(epoch, total / len(train_loader), val_loss)
