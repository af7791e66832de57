import torch


def run(model, criterion, train_loader, val_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", patience=5)
    for epoch in range(epochs):
        model.train()
        for clips, labels in train_loader:
            optimizer.zero_grad()
            criterion(model(clips), labels).backward()
            optimizer.step()
        top1_acc = validate(model, val_loader)
        scheduler.step(top1_acc)  # expect: plateau-wrong-mode


def validate(model, val_loader):
    model.eval()
    correct = count = 0
    with torch.no_grad():
        for clips, labels in val_loader:
            correct += (model(clips).argmax(1) == labels).sum().item()
            count += len(labels)
    return correct / count
