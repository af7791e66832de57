"""Segmentation of tumours with accumulated gradients: the modulo is the wrong way round as well."""

import torch
from torch import nn


def train(model: nn.Module, loader, criterion, epochs: int, accumulation: int, device: str) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for i_batch, batch in enumerate(loader):
            images = batch["image"].to(device)
            targets = batch["mask"].to(device)
            loss = criterion(model(images), targets) / accumulation
            loss.backward()
            if accumulation % (i_batch + 1) == 0:
                optimizer.step()
                optimizer.zero_grad  # expect: uncalled-method
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
