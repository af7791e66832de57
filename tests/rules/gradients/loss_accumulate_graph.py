import torch
from torch.nn import functional as F


def running_total(model, loader, criterion, optimizer):
    total, count = 0, 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss  # expect: loss-accumulate-graph
        count += 1
    return total / count


def weighted_total(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total = total + loss * x.size(0)  # expect: loss-accumulate-graph
    return total


def list_of_losses(model, loader, criterion, optimizer, scaler):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss)  # expect: loss-accumulate-graph
    return torch.stack(losses).mean().item()


def two_parts(generator, discriminator, loader, optimizer):
    total = 0
    for real in loader:
        optimizer.zero_grad()
        loss_real = F.softplus(-discriminator(real)).mean()
        loss_fake = F.softplus(discriminator(generator(len(real)))).mean()
        loss_real.backward()
        loss_fake.backward()
        loss = loss_real + loss_fake
        optimizer.step()
        total += loss  # expect: loss-accumulate-graph
    return total


def numbers_only(model, loader, criterion, optimizer, meter):
    total, kept, third = 0.0, [], 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        total += float(loss)
        total += loss.data[0]
        third += loss.detach()
        kept.append(loss.cpu().data.numpy())
        meter.update(loss.item())
    return total, kept, third


def one_step_of_many_losses(model, loader, heads, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        total = 0
        for head in heads:
            loss = F.cross_entropy(head(model(x)), y)
            total += loss
        total.backward()
        optimizer.step()


def through_time(cell, loader, optimizer):
    for sequence in loader:
        state, loss = None, 0
        for x in sequence:
            state = cell(x, state)
            loss += state.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def made_a_number_first(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        loss = loss.item()
        total += loss
    return total


def without_gradients(model, loader, criterion, optimizer):
    total = torch.zeros(1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            total += loss
    return total


def evaluate(model, loader, criterion):
    total = 0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y)
    return total


def reset_in_the_loop(model, loader, criterion, optimizer):
    running = 0
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss
        if i % 10 == 9:
            print(running / 10)
            running = 0


class Metric:
    def __init__(self):
        self.numbers = []

    def append(self, value):
        self.numbers.append(value.item())


def metrics_of_our_own(model, loader, optimizer, criterion):
    scalars = {"train": Metric(), "step": Metric()}
    total = Metric()
    history = {"train": [], "step": []}
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scalars["train"].append(loss)
        total.append(loss)
        history["train"].append(loss)  # expect: loss-accumulate-graph


def with_a_cast_target(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y.float())
        loss.backward()
        optimizer.step()
        total += loss  # expect: loss-accumulate-graph
    return total / len(loader)


def with_a_detached_teacher(model, teacher, loader, optimizer):
    total = 0
    for x, _ in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), teacher(x).detach())
        loss.backward()
        optimizer.step()
        total += loss  # expect: loss-accumulate-graph
    return total


def as_a_number(model, loader, criterion, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y.float())
        loss.backward()
        optimizer.step()
        loss = float(loss)
        total += loss
    return total


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.value = value
        self.sum += value * n
        self.count += n


class NumberMeter:
    def __init__(self):
        self.sum = 0.0

    def update(self, value):
        self.sum += float(value)


class LastMeter:
    def update(self, value):
        self.last = value


def meter_of_losses(model, criterion, optimizer, loader):
    losses, numbers, last = Meter(), NumberMeter(), LastMeter()
    kept = Meter()
    shown = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.update(loss, len(x))  # expect: loss-accumulate-graph
        losses.update(loss.item(), len(x))
        numbers.update(loss)
        last.update(loss)
        shown.update(loss)
        print(shown.sum)
        shown.reset()
