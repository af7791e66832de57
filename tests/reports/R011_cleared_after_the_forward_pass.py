"""Classification: the gradients are cleared after the forward pass, which is early enough."""
# never: zero-grad-missing

import torch
from torch import nn


def train(model: nn.Module, train_loader, lr: float, epochs: int, device: str):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        for images, labels in train_loader:
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            loss = criterion(outputs, labels)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
