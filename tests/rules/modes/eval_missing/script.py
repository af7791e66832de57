"""A script that never says ``no_grad`` or ``eval``."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

to_tensor = transforms.ToTensor()
train_loader = DataLoader(datasets.MNIST(".", train=True, transform=to_tensor), 64, shuffle=True)
test_loader = DataLoader(datasets.MNIST(".", train=False, transform=to_tensor), 64)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.Dropout(0.3), nn.Linear(128, 10))
plain = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = torch.optim.Adam([*model.parameters(), *plain.parameters()])

for epoch in range(5):
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images) + plain(images), labels)
        loss.backward()
        optimizer.step()

correct = 0
for images, labels in test_loader:
    correct += (model(images).argmax(1) == labels).sum().item()  # expect: eval-missing
print(correct)

correct = 0
for images, labels in test_loader:
    correct += (plain(images).argmax(1) == labels).sum().item()
print(correct)
