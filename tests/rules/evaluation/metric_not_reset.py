"""Metrics that add up over batches, epoch after epoch."""

import torch
import torchmetrics
from torch.nn import functional as F
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryF1Score, MulticlassAccuracy


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = self.count = self.avg = 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


# What must be flagged.


def torchmetrics_object(model, epochs: int, val_loader, device):
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10).to(device)
    for epoch in range(epochs):
        model.eval()
        for x, y in val_loader:
            accuracy.update(model(x), y)
        print(epoch, accuracy.compute())  # expect: metric-not-reset


def called_like_a_function(model, epochs: int, loader, optimizer):
    f1 = BinaryF1Score()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x)
            F.binary_cross_entropy_with_logits(logits, y).backward()
            optimizer.step()
            f1(logits.sigmoid(), y.int())
        score = f1.compute()  # expect: metric-not-reset
        print(epoch, score)


def evaluate(model, loader, metric):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            metric.update(model(x), y)
    return metric.compute()  # expect: metric-not-reset


def in_a_helper(model, epochs: int, train, val_loader):
    metric = MulticlassAccuracy(num_classes=5)
    for epoch in range(epochs):
        train(model)
        print(evaluate(model, val_loader, metric))


def plain_sums(model, epochs: int, val_loader):
    correct = 0
    for epoch in range(epochs):
        total = 0
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
            total += len(y)
        print(f"{epoch}: {100 * correct / total:.1f}%")  # expect: metric-not-reset


def loss_sum(model, num_epochs: int, train_loader, optimizer):
    running_loss = 0.0
    for epoch in range(num_epochs):
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        epoch_loss = running_loss / len(train_loader)  # expect: metric-not-reset
        print(epoch, epoch_loss)


def meter(model, epochs: int, val_loader):
    losses = AverageMeter()
    for epoch in range(epochs):
        for x, y in val_loader:
            losses.update(F.cross_entropy(model(x), y).item(), len(y))
        print(epoch, losses.avg)  # expect: metric-not-reset


# What must not.


def reset_after(model, epochs: int, val_loader):
    accuracy = MulticlassAccuracy(num_classes=10)
    for epoch in range(epochs):
        for x, y in val_loader:
            accuracy.update(model(x), y)
        print(epoch, accuracy.compute())
        accuracy.reset()


def made_in_each_epoch(model, epochs: int, val_loader):
    for epoch in range(epochs):
        accuracy = MulticlassAccuracy(num_classes=10)
        correct = 0
        for x, y in val_loader:
            accuracy.update(model(x), y)
            correct += (model(x).argmax(1) == y).sum().item()
        print(epoch, accuracy.compute(), correct / len(val_loader.dataset))


def several(model, epochs: int, val_loader):
    metrics = MetricCollection([MulticlassAccuracy(num_classes=10)])
    for epoch in range(epochs):
        metrics.reset()
        for x, y in val_loader:
            metrics.update(model(x), y)
        print(epoch, metrics.compute())


def shown_while_running(model, val_loader):
    accuracy = MulticlassAccuracy(num_classes=10)
    for x, y in val_loader:
        accuracy.update(model(x), y)
        print(accuracy.compute())


def every_hundred_batches(model, epochs: int, train_loader, optimizer):
    running_loss = 0.0
    for epoch in range(epochs):
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            if i % 100 == 99:
                print(running_loss / 100)
                running_loss = 0.0


def mean_over_the_whole_training(model, epochs: int, train_loader, criterion):
    total_loss, steps = 0.0, 0
    for epoch in range(epochs):
        for x, y in train_loader:
            total_loss += criterion(model(x), y).item()
            steps += 1
        print(epoch, total_loss / steps)
    return total_loss / steps


def meter_reset(model, epochs: int, val_loader):
    losses = AverageMeter()
    for epoch in range(epochs):
        losses.reset()
        for x, y in val_loader:
            losses.update(F.cross_entropy(model(x), y).item(), len(y))
        print(epoch, losses.avg)


def counter_of_samples(model, epochs: int, train_loader):
    seen = 0
    for epoch in range(epochs):
        for x, y in train_loader:
            seen += len(y)
        print(epoch, seen / 1000, "thousand samples")


def one_epoch(model, val_loader):
    correct = 0
    for x, y in val_loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(val_loader.dataset)


class Score:
    def __init__(self):
        self.reset()

    def reset(self):
        self.right = self.total = 0

    def update(self, logits, labels):
        self.right += (logits.argmax(1) == labels).sum().item()
        self.total += len(labels)

    def compute(self):
        return self.right / self.total


class Buffer:
    def update(self, item):
        self.size += 1

    def get(self):
        return self.size


def own_score(model, epochs: int, val_loader):
    score = Score()
    for epoch in range(epochs):
        for x, y in val_loader:
            score.update(model(x), y)
        print(epoch, score.compute())  # expect: metric-not-reset


def own_score_reset(model, epochs: int, val_loader):
    score = Score()
    for epoch in range(epochs):
        score.reset()
        for x, y in val_loader:
            score.update(model(x), y)
        print(epoch, score.compute())


def keeps_everything_on_purpose(model, epochs: int, train_loader):
    buffer = Buffer()
    for epoch in range(epochs):
        for x, y in train_loader:
            buffer.update(model(x))
        print(epoch, buffer.get())
