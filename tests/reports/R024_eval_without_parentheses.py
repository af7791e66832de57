"""The course's quickstart: a training loop and a test loop over Fashion MNIST."""

import torch
from torch import nn


def train_loop(loader, model, loss_fn, optimizer):
    model.train()
    for X, y in loader:
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test_loop(loader, model, loss_fn):
    model.eval  # expect: uncalled-method
    test_loss, correct = 0.0, 0.0
    with torch.no_grad():
        for X, y in loader:
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).float().sum().item()
    print(f"accuracy {correct / len(loader.dataset):.3f}, loss {test_loss / len(loader):.4f}")


def main(train_loader, test_loader):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(10):
        train_loop(train_loader, model, loss_fn, optimizer)
        test_loop(test_loader, model, loss_fn)
