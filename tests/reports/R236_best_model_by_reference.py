"""Time series: early stopping hands back the network that trained on."""

import torch
from torch import nn


def fit(model: nn.Module, loader, val_loader, epochs: int) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lowest, best_model = float("inf"), None
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = sum(nn.functional.mse_loss(model(x), y).item() for x, y in val_loader)
        if loss < lowest:
            lowest = loss
            best_model = model  # expect: best-state-alias
    return best_model
