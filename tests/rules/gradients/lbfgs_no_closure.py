import torch
from torch import nn, optim

model = nn.Linear(4, 1)
criterion = nn.MSELoss()


def no_closure(x, y):
    optimizer = optim.LBFGS(model.parameters(), lr=0.8)
    for _ in range(10):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()  # expect: lbfgs-no-closure


def only_evaluates(x, y):
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        return criterion(model(x), y)

    for _ in range(10):
        optimizer.step(closure)  # expect: lbfgs-no-closure


def returns_nothing(x, y):
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        criterion(model(x), y).backward()

    optimizer.step(closure)  # expect: lbfgs-no-closure


class Trainer:
    def __init__(self, network):
        self.network = network
        self.optimizer = optim.LBFGS(network.parameters())

    def fit(self, x, y):
        for _ in range(5):
            self.optimizer.zero_grad()
            criterion(self.network(x), y).backward()
            self.optimizer.step()  # expect: lbfgs-no-closure


def right(x, y):
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)
        optimizer.step(lambda: closure())


def another_optimizer(x, y, name):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()


def chosen_by_name(x, y, name):
    if name == "lbfgs":
        optimizer = torch.optim.LBFGS(model.parameters())
    else:
        optimizer = torch.optim.Adam(model.parameters())
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
