"""One epoch of training, as several scripts share it."""


def train_one_epoch(model, criterion, loader, optimizer, scheduler):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()  # expect: scheduler-cadence-mismatch


def train_one_epoch_of_many(model, criterion, loader, optimizer, schedule):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
