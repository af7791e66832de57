"""Fine-tuning that validates every few hundred steps."""

import torch


def fit(model, train_loader, val_loader, criterion, optimizer, every=500):
    step = 0
    for x, y in train_loader:
        model.train()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        step += 1
        if step % every == 0:
            model.eval()
            with torch.no_grad:  # expect: no-grad-uncalled
                losses = [criterion(model(a), b).item() for a, b in val_loader]
            print(step, sum(losses) / len(losses))
