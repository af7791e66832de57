"""A course's first training loop: the gradients of an epoch add up batch by batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

data = datasets.FashionMNIST("data", train=True, transform=transforms.ToTensor())
loader = DataLoader(data, batch_size=64, shuffle=True)
net = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)

for epoch in range(5):
    optimizer.zero_grad()  # expect: zero-grad-per-epoch
    total = 0.0
    for images, labels in loader:
        loss = loss_function(net(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
