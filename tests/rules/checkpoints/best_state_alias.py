"""Keeping the best weights: references that go on changing, and copies that do not."""

import copy
from contextlib import contextmanager

import torch
from torch import nn
from torchvision import models


def one_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def accuracy_of(model, loader):
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def transfer_learning(loader, val_loader, optimizer):
    model = models.resnet18(weights="DEFAULT")
    best_weights = model.state_dict()
    best_accuracy = 0.0
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        accuracy = accuracy_of(model, val_loader)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_weights = model.state_dict()  # expect: best-state-alias
    model.load_state_dict(best_weights)
    return model


def copying_the_dictionary_only(model, loader, val_loader, optimizer, path):
    best_accuracy = 0.0
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        accuracy = accuracy_of(model, val_loader)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_state = model.state_dict().copy()  # expect: best-state-alias
    torch.save(best_state, path)


def in_a_checkpoint(model, loader, val_loader, optimizer, path):
    best = {"accuracy": 0.0}
    for epoch in range(25):
        one_epoch(model, loader, optimizer)
        accuracy = accuracy_of(model, val_loader)
        if accuracy > best["accuracy"]:
            best = {"epoch": epoch, "accuracy": accuracy, "model": model.state_dict()}  # expect: best-state-alias
    torch.save(best, path)


def under_another_name(model, loader, val_loader, optimizer):
    lowest = float("inf")
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        loss = accuracy_of(model, val_loader)
        if loss < lowest:
            lowest = loss
            weights = {name: value.detach() for name, value in model.state_dict().items()}  # expect: best-state-alias
    model.load_state_dict(weights)


def model_by_reference(model, loader, val_loader, optimizer):
    best_loss, best_model = float("inf"), None
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        loss = accuracy_of(model, val_loader)
        if loss < best_loss:
            best_loss = loss
            best_model = model  # expect: best-state-alias
    return best_model


class EarlyStopping:
    def __init__(self, patience: int):
        self.patience = patience
        self.best_loss = float("inf")
        self.best_state = None

    def __call__(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = model.state_dict()  # expect: best-state-alias

    def restore(self, model):
        model.load_state_dict(self.best_state)


def cross_validation_resets_nothing(model, folds, optimizer):
    start = model.state_dict()  # expect: best-state-alias
    for loader in folds:
        model.load_state_dict(start)
        one_epoch(model, loader, optimizer)


# What is right.


def deep_copies(model, loader, val_loader, optimizer):
    best_accuracy, best_state = 0.0, copy.deepcopy(model.state_dict())
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        accuracy = accuracy_of(model, val_loader)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_state = copy.deepcopy(model.state_dict())
            best_clone = {name: value.cpu().clone() for name, value in model.state_dict().items()}
            best_model = copy.deepcopy(model)
    model.load_state_dict(best_state or best_clone)
    return best_model


def written_at_once(model, loader, val_loader, optimizer, path):
    best_accuracy = 0.0
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        accuracy = accuracy_of(model, val_loader)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_state = model.state_dict()
            torch.save(best_state, path)
        if isinstance(model, nn.DataParallel):
            state = model.module.state_dict()
        else:
            state = model.state_dict()
        torch.save({"model": state}, "last.pt")


def a_model_for_each_seed(loader, val_loader):
    best_accuracy, best_model, best_state = 0.0, None, None
    for seed in range(5):
        torch.manual_seed(seed)
        model = nn.Linear(4, 2)
        one_epoch(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))
        accuracy = accuracy_of(model, val_loader)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_model = model
            best_state = model.state_dict()
    return best_model, best_state


def stops_there(model, loader, val_loader, optimizer, target):
    best_state = None
    for _ in range(25):
        one_epoch(model, loader, optimizer)
        if accuracy_of(model, val_loader) > target:
            best_state = model.state_dict()
            break
    return best_state


def from_one_network_into_another(model, pretrained):
    weights = model.state_dict()
    weights.update({k: v for k, v in pretrained.items() if k in weights})
    model.load_state_dict(weights)
    target = copy.deepcopy(model)
    target.load_state_dict(model.state_dict())
    return target


def partly_replaced(model, loaded):
    own = model.state_dict()
    for name, value in loaded.items():
        own[name] = value
    model.load_state_dict(own)


class Resumable:
    """An engine has counters, and no weights."""

    def fit(self, engine, loader):
        engine.run(loader)
        self.last = engine.state_dict()

    def go_on(self, engine, loader):
        engine.load_state_dict(self.last)
        self.fit(engine, loader)


def train_one_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def kept_on_another_device(model, loader, optimizer, evaluate, device):
    best, best_state, first_state = 0.0, None, model.state_dict()
    model.to(device)
    for _ in range(10):
        train_one_epoch(model, loader, optimizer)
        score = evaluate(model)
        if score > best:
            best = score
            best_state = model.cpu().state_dict()
            model.cuda()
    model.load_state_dict(best_state if best > 0.5 else first_state)


def moved_and_moved_back(model, loader, optimizer, evaluate, device):
    best, best_state = 0.0, None
    for _ in range(10):
        train_one_epoch(model, loader, optimizer)
        score = evaluate(model)
        if score > best:
            best = score
            model.cpu()
            best_state = model.state_dict()
            model.to(device)
    model.load_state_dict(best_state)


def another_one_is_moved(model, teacher, loader, optimizer, evaluate):
    best, best_state = 0.0, None
    for _ in range(10):
        train_one_epoch(model, loader, optimizer)
        score = evaluate(model)
        if score > best:
            best = score
            best_state = model.state_dict()  # expect: best-state-alias
            teacher.cpu()
    model.load_state_dict(best_state)


@contextmanager
def on_device(model, device):
    before = next(model.parameters()).device
    model.to(device)
    yield
    model.to(before)


def trials(model, train, rates):
    with on_device(model, "cpu"):
        start = model.state_dict()
    for rate in rates:
        model.load_state_dict(start)
        train(model, torch.optim.SGD(model.parameters(), rate))


def trials_on_one_device(model, train, rates):
    start = model.state_dict()  # expect: best-state-alias
    for rate in rates:
        model.load_state_dict(start)
        train(model, torch.optim.SGD(model.parameters(), rate))


def loading_is_tried(checkpoint):
    model = nn.Linear(3, 3)
    state = model.state_dict()
    model.load_state_dict(state)
    other = torch.load(checkpoint, map_location="cpu")
    model.load_state_dict(other, strict=False)
