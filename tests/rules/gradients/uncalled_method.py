"""Training loops in which parentheses are missing, and attributes that are rightly not called."""

import functools

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau


def train(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    history = []
    model.train  # expect: uncalled-method
    for x, y in loader:
        optimizer.zero_grad  # expect: uncalled-method
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward  # expect: uncalled-method
        optimizer.step  # expect: uncalled-method
        history.append(loss.item)  # expect: uncalled-method
        print(f"loss {loss.item:.3f}")  # expect: uncalled-method
    scheduler.step  # expect: uncalled-method
    return history


def validate(net, loader, criterion):
    if net.training: net.eval  # expect: uncalled-method
    running_loss = 0.0
    for x, y in loader:
        loss = criterion(net(x), y)
        running_loss += loss.item  # expect: uncalled-method
        print("step", loss.item)  # expect: uncalled-method
    return running_loss


class Trainer:
    def __init__(self, model, args):
        self.model = model
        self.optim = torch.optim.Adam(model.parameters())
        self.plateau = ReduceLROnPlateau(self.optim)
        self.args = args

    def epoch(self, loader, losses):
        self.model.train(); self.optim.zero_grad  # expect: uncalled-method
        for batch in loader:
            losses.backward()
            self.optim.step()
        self.plateau.step  # expect: uncalled-method
        self.model.eval  # expect: uncalled-method

    def lazily(self):
        self.args.train
        self.eval

    def eval(self):
        return self.model.eval()


class Probe(nn.Module):
    def forward(self, x):
        self.train  # expect: uncalled-method
        return x


def instrument(optimizer, model, loss, callbacks, dataset):
    real = optimizer.zero_grad
    optimizer.zero_grad = functools.partial(real, set_to_none=True)
    callbacks.register(model.eval)
    later = functools.partial(optimizer.step)
    hooks = [model.train, model.eval]
    getter = loss.item
    dataset.train
    x = model.training or loss.grad is None or loss.is_cuda
    for name, value in callbacks.losses.items():
        print(name, value.item(), loss.item())
    return later, hooks, x, getter


def has_modes(model):
    try:
        model.eval
    except AttributeError:
        return False
    return True


def describe(model):
    """Prints what is there.

    model.eval
    optimizer.zero_grad
    """
    model
    model.parameters()
