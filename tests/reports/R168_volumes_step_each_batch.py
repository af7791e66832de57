import torch


def train_one_epoch(network, criterion, loader, optimizer, scheduler):
    network.train()
    total = 0.0
    for volume, mask in loader:
        optimizer.zero_grad()
        loss = criterion(network(volume), mask)
        loss.backward()
        optimizer.step()
        scheduler.step()  # expect: scheduler-cadence-mismatch
        total += loss.item()
    return total / len(loader)


def main(network, criterion, train_loader, max_epochs):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.99)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max_epochs)
    for epoch in range(max_epochs):
        print(train_one_epoch(network, criterion, train_loader, optimizer, scheduler))
