import torch
from torch.optim import lr_scheduler


def fit(network, criterion, train_loader, val_loader, epochs):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.7)
    for epoch in range(epochs):
        scheduler.step()  # expect: scheduler-before-optimizer
        network.train()
        for points, label in train_loader:
            optimizer.zero_grad()
            loss = criterion(network(points), label)
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            correct = sum((network(p).argmax(1) == t).sum().item() for p, t in val_loader)
        print(epoch, correct)
