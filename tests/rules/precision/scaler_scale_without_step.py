import torch
from torch.cuda.amp import GradScaler, autocast


def forgotten(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        optimizer.step()  # expect: scaler-scale-without-step
        scaler.update()


class Trainer:
    def __init__(self, model, conf):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=conf.lr)
        self.grad_scaler = GradScaler()

    def train_iteration(self, batch):
        self.optimizer.zero_grad()
        loss = self.model(batch).mean()
        scaled = self.grad_scaler.scale(loss)
        scaled.backward()
        self.optimizer.step()  # expect: scaler-scale-without-step


def one_branch(model, optimizer, criterion, loader, scaler, accumulation):
    for i, (x, y) in enumerate(loader):
        scaler.scale(criterion(model(x), y) / accumulation).backward()
        if (i + 1) % accumulation == 0:
            optimizer.step()  # expect: scaler-scale-without-step
            optimizer.zero_grad()


def right(model, optimizer, criterion, loader, use_amp):
    scaler = GradScaler(enabled=use_amp)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()


def two_ways(model, optimizer, criterion, loader, use_amp, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if use_amp:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()


def two_flags_that_agree(model, optimizer, criterion, loader, use_amp, scaler=None):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if scaler:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if use_amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()


def by_hand(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        scaler.unscale_(optimizer)
        if all(torch.isfinite(p.grad).all() for p in model.parameters()):
            optimizer.step()
        scaler.update()


def another_network(model, critic, optimizer, critic_optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
        critic_optimizer.zero_grad()
        critic(x).mean().backward()
        critic_optimizer.step()


def given_to_a_helper(engine, model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        scaler.scale(criterion(model(x), y)).backward()
        engine.unscale_and_clip(scaler, optimizer)
        optimizer.step()
