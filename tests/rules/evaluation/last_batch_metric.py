"""Evaluations in batches: what is left of them after the loop."""

import torch
from torch.nn import functional as F


# What must be flagged.


@torch.no_grad()
def validation_loss(model, val_loader, criterion):
    model.eval()
    for x, y in val_loader:
        loss = criterion(model(x), y)
    return loss.item()  # expect: last-batch-metric


def accuracy_of_the_test(model, test_loader, device):
    model.eval()
    with torch.no_grad():
        for images, labels in test_loader:
            images, labels = images.to(device), labels.to(device)
            prediction = model(images).argmax(1)
            accuracy = (prediction == labels).float().mean()
    print(f"accuracy {accuracy:.3f}")  # expect: last-batch-metric


def in_each_epoch(model, train_one_epoch, loaders, epochs: int):
    for epoch in range(epochs):
        train_one_epoch(model)
        model.eval()
        for batch in loaders.val_loader:
            val_loss = F.mse_loss(model(batch["x"]), batch["y"])
        print(epoch, val_loss.item())  # expect: last-batch-metric


def by_key(model, dataloaders):
    with torch.no_grad():
        for x, y in dataloaders["val"]:
            error = F.l1_loss(model(x), y)
    return float(error)  # expect: last-batch-metric


# What must not.


@torch.no_grad()
def added_up(model, val_loader, criterion):
    total = 0.0
    for x, y in val_loader:
        loss = criterion(model(x), y)
        total += loss.item()
    return total / len(val_loader)


@torch.no_grad()
def running_accuracy(model, test_loader):
    correct = count = 0
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum().item()
        count += len(y)
        accuracy = correct / count
    return accuracy


@torch.no_grad()
def kept_in_a_meter(model, val_loader, criterion, meter):
    for x, y in val_loader:
        meter.update(criterion(model(x), y).item(), len(y))
        loss = meter.average()
    return loss


@torch.no_grad()
def one_batch_only(model, val_loader, criterion):
    for x, y in val_loader:
        loss = criterion(model(x), y)
        break
    return loss.item()


def progress_of_training(model, train_loader, criterion, optimizer):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print("last loss", loss.item())


@torch.no_grad()
def collected(model, val_loader, score):
    predictions, targets = [], []
    for x, y in val_loader:
        predictions.append(model(x))
        targets.append(y)
        f1 = score(torch.cat(predictions), torch.cat(targets))
    return f1


@torch.no_grad()
def logged_on_each_lap(model, val_loader, criterion, writer):
    for step, (x, y) in enumerate(val_loader):
        loss = criterion(model(x), y)
        writer.add_scalar("val/loss", loss, step)


@torch.no_grad()
def bound_again(model, val_loader, criterion):
    losses = []
    for x, y in val_loader:
        loss = criterion(model(x), y)
        losses.append(loss)
    loss = torch.stack(losses).mean()
    return loss


def several_loaders(model, test_loaders, evaluate):
    for loader in test_loaders:
        test_loss = evaluate(model, loader)
    return test_loss


def several_by_name(model, val_loaders, evaluate):
    for name, loader in val_loaders.items():
        val_loss = evaluate(model, loader)
        print(name)
    return val_loss


def added_behind_the_loop(model, val_loader):
    correct, count = 0, 0
    with torch.no_grad():
        for x, y in val_loader:
            predicted = model(x).argmax(1)
            count += len(y)
        correct += (predicted == y).sum().item()  # expect: last-batch-metric
    return correct / count


def added_for_each_loader(model, test_loaders):
    total = 0
    for test_loader in test_loaders:
        correct = 0
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
        total += correct
    return total


def emptied_in_the_loop(model, loader, criterion, optimizer, bar):
    laps = bar(enumerate(loader))
    for _, (x, y) in laps:
        losses, accuracies = [], []
        optimizer.zero_grad()
        logits = model(x)
        with torch.no_grad():
            accuracies.append((logits.argmax(1) == y).float().mean().item())
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    accuracy = sum(accuracies) / len(accuracies)  # expect: last-batch-metric
    return sum(losses) / len(losses), accuracy  # expect: last-batch-metric


def emptied_before_the_loop(model, loader, criterion, optimizer):
    losses = []
    for x, y in loader:
        parts = []
        optimizer.zero_grad()
        for view in x.unbind(1):
            parts.append(criterion(model(view), y))
        loss = sum(parts) / len(parts)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def written_out_and_begun_anew(loader, write):
    rows = []
    for number, batch in enumerate(loader):
        rows.append(float(batch.mean()))
        if number % 100 == 99:
            write(rows)
            rows = []
    return sum(rows)
