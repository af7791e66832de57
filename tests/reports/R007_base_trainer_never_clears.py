"""Image restoration: the base trainer goes from backward to step, batch after batch."""

import torch


class BaseTrainer:
    def __init__(self, model, loader, config) -> None:
        self.model = model
        self.loader = loader
        self.epochs = config["epochs"]
        self.criterion = torch.nn.L1Loss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])

    def train(self):
        for epoch in range(self.epochs):
            self.train_epoch(epoch)

    def train_epoch(self, epoch: int):
        self.model.train()
        running = 0.0
        for degraded, clean in self.loader:
            loss = self.criterion(self.model(degraded), clean)
            loss.backward()  # expect: zero-grad-missing
            self.optimizer.step()
            running += loss.item()
        print(f"[{epoch}] {running / len(self.loader):.4f}")
