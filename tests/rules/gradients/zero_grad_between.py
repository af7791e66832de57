import torch
from torch import nn
from torch.nn import functional as F


def thrown_away(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.zero_grad()  # expect: zero-grad-between
        optimizer.step()


def with_a_scaler(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.zero_grad()  # expect: zero-grad-between
        scaler.step(optimizer)
        scaler.update()


def by_the_network(loader):
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        model.zero_grad()  # expect: zero-grad-between
        optimizer.step()


class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())

    def update(self, loss):
        self.optimizer.zero_grad()  # expect: zero-grad-between
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.update(loss)


def gan(generator, discriminator, loader):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_d = torch.optim.Adam(discriminator.parameters())
    for real in loader:
        fake = generator(torch.randn(len(real), 8))
        loss_d = discriminator(fake.detach()).mean() - discriminator(real).mean()
        loss_d.backward()
        optimizer_g.zero_grad()
        optimizer_d.step()
        optimizer_d.zero_grad()
        loss_g = -discriminator(fake).mean()
        loss_g.backward()
        optimizer_d.zero_grad()
        optimizer_g.step()


def two_passes(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.mse_loss(model(x), y).backward()
        optimizer.zero_grad()
        F.mse_loss(model(x + 1), y).backward()
        optimizer.step()


def surgery(model, tasks):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in tasks:
        F.mse_loss(model(x), y).backward()
        kept = [p.grad.clone() for p in model.parameters()]
        optimizer.zero_grad()
        for p, g in zip(model.parameters(), kept):
            p.grad = g * 2
        optimizer.step()


def sometimes_skipped(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if not torch.isfinite(loss):
            optimizer.zero_grad()
        optimizer.step()


def after_the_step(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def sharpness_aware(model, loader, optimizer):
    for x, y in loader:
        F.mse_loss(model(x), y).backward()
        optimizer.first_step(zero_grad=True)
        F.mse_loss(model(x), y).backward()
        optimizer.second_step(zero_grad=True)


class Agent:
    """What is stepped and cleared hangs on a network that unseen code makes, in two ways."""

    def __init__(self, policy_class, is_recurrent):
        self.policy = policy_class(8)
        if is_recurrent:
            self.policy = policy_class(16)

    def train(self, buffer):
        for data in buffer.get():
            values = self.policy.evaluate_actions(data.observations)
            loss = F.mse_loss(values, data.returns)
            loss.backward()
            self.policy.optimizer.zero_grad()  # expect: zero-grad-between
            self.policy.optimizer.step()

    def train_right(self, buffer):
        for data in buffer.get():
            values = self.policy.evaluate_actions(data.observations)
            self.policy.optimizer.zero_grad()
            F.mse_loss(values, data.returns).backward()
            self.policy.optimizer.step()

    def computed_by_the_network(self, buffer):
        for data in buffer.get():
            self.policy.optimizer.zero_grad()
            self.policy.compute_gradients(data)
            self.policy.optimizer.step()
