"""Regression with Huber loss, data loader workers, plateau schedule and GradScaler on the CPU."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, size):
        self.inputs = torch.rand(size, 6, generator=torch.Generator().manual_seed(size))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        x = self.inputs[index]
        return x, (x.sum() + x[0] * x[1]).reshape(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(Waves(256), batch_size=32, shuffle=True, num_workers=2)
    val_loader = DataLoader(Waves(64), batch_size=32)
    model = nn.Sequential(
        nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    scaler = torch.amp.GradScaler("cpu")
    for epoch in range(4):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            prediction = model(x)
            loss = criterion(prediction, y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            error = sum(criterion(model(x), y).item() for x, y in val_loader)
        scheduler.step(error)
        print("error", error)
