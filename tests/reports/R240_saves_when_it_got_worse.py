"""A detector: the checkpoint is overwritten each time the validation loss has not improved."""

import torch


def evaluate(model, loader, criterion, device):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for images, targets in loader:
            total += criterion(model(images.to(device)), targets.to(device)).item()
    return total / len(loader)


def run(model, train_loader, val_loader, criterion, optimizer, epochs: int, device):
    best_loss = 100.0
    for epoch in range(epochs):
        model.train()
        for images, targets in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images.to(device)), targets.to(device))
            loss.backward()
            optimizer.step()
        val_loss = evaluate(model, val_loader, criterion, device)
        if best_loss <= val_loss:  # expect: best-checkpoint-wrong-compare
            best_loss = val_loss
            torch.save(model.state_dict(), "detector.pth")
            print(f"epoch {epoch}: saved at {best_loss:.4f}")
