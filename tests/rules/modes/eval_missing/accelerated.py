"""What accelerate unwraps is the model itself."""

import torch
from accelerate import Accelerator
from torchvision.models import resnet18


def train(train_loader, val_loader, epochs):
    accelerator = Accelerator()
    model = resnet18()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    for _ in range(epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
            optimizer.step()
        accelerator.unwrap_model(model).eval()
        with torch.no_grad():
            for x, y in val_loader:
                print((accelerator.unwrap_model(model)(x).argmax(1) == y).sum())
