"""A tutorial on transfer learning without its deep copy."""

import torch
from torch import nn
from torchvision import models


def train_model(loaders, epochs: int) -> nn.Module:
    model = models.resnet18(weights="DEFAULT")
    model.fc = nn.Linear(512, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    best_model_wts, best_acc = model.state_dict(), 0.0
    for _ in range(epochs):
        for phase in ("train", "val"):
            model.train(phase == "train")
            correct = 0
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    if phase == "train":
                        nn.functional.cross_entropy(outputs, labels).backward()
                        optimizer.step()
                correct += (outputs.argmax(1) == labels).sum().item()
            if phase == "val" and correct > best_acc:
                best_acc = correct
                best_model_wts = model.state_dict()  # expect: best-state-alias
    model.load_state_dict(best_model_wts)
    return model
