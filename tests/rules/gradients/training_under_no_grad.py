import lightning
import torch
from torch import nn
from torch.nn import functional as F


@torch.no_grad()  # expect: training-under-no-grad
def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def train_and_validate(model, loader, optimizer):
    with torch.inference_mode():  # expect: training-under-no-grad
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

    @torch.no_grad()  # expect: training-under-no-grad
    def forward(self, x):
        return self.layers(x)


def fit(loader, other):
    network = Network()
    optimizer = torch.optim.Adam(network.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y) + other(x).mean()
        loss.backward()
        optimizer.step()


class Module(lightning.LightningModule):
    @torch.no_grad()  # expect: training-under-no-grad
    def training_step(self, batch, batch_idx):
        return self(batch).mean()

    @torch.no_grad()
    def validation_step(self, batch, batch_idx):
        return self(batch).mean()


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 8)

    @torch.no_grad()
    def forward(self, x):
        return self.encoder(x)


def head_on_frozen_features(loader):
    features, head = Frozen(), nn.Linear(8, 2)
    optimizer = torch.optim.Adam(head.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            z = features(x)
        F.cross_entropy(head(z), y).backward()
        optimizer.step()


def distilled(student, teacher, loader, optimizer):
    for x, _ in loader:
        with torch.no_grad():
            target = teacher(x).softmax(1)
        optimizer.zero_grad()
        F.cross_entropy(student(x), target).backward()
        optimizer.step()


@torch.no_grad()
def attack(model, x, y):
    with torch.enable_grad():
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
    return x + x.grad.sign()


def graph_from_outside(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        with torch.no_grad():
            loss.backward()
            optimizer.step()


def by_phase(model, loader, optimizer, phase):
    for x, y in loader:
        with torch.set_grad_enabled(phase == "train"):
            loss = F.cross_entropy(model(x), y)
            if phase == "train":
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
