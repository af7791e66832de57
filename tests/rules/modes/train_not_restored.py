"""Training that goes on in eval mode, and evaluations that leave everything as it was."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.backbone(x).mean((2, 3)))


def one_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def evaluate(model, loader):
    model.eval()  # expect: train-not-restored
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def quickstart(train_loader, test_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        one_epoch(model, train_loader, optimizer)
        print(epoch, evaluate(model, test_loader))


def in_the_middle_of_the_epoch(model, loader, val_loader, optimizer, every: int):
    for epoch in range(5):
        model.train()
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if step % every == 0:
                model.eval()  # expect: train-not-restored
                with torch.no_grad():
                    for a, b in val_loader:
                        print(F.cross_entropy(model(a), b).item())


# What is right.


def train_first_thing(model, loader, optimizer):
    model.train()
    one_epoch(model, loader, optimizer)


def check(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def with_train_in_the_helper(train_loader, test_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        train_first_thing(model, train_loader, optimizer)
        print(epoch, check(model, test_loader))
    print("test", check(model, test_loader))


def checks_and_restores(model, loader):
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    finally:
        model.train(was_training)


def with_restoring_helper(train_loader, test_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        one_epoch(model, train_loader, optimizer)
        print(epoch, checks_and_restores(model, test_loader))


def check_average(shadow, loader):
    shadow.eval()
    with torch.no_grad():
        return sum((shadow(x).argmax(1) == y).sum().item() for x, y in loader)


def evaluation_on_an_average(train_loader, test_loader):
    model = Net()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        one_epoch(model, train_loader, optimizer)
        for old, new in zip(average.parameters(), model.parameters()):
            old.data.lerp_(new.data, 0.1)
        print(epoch, check_average(average, test_loader))


def frozen_statistics_on_purpose(train_loader, test_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        model.eval()
        one_epoch(model, train_loader, optimizer)


def frozen_backbone(train_loader, val_loader):
    model = Net()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    for epoch in range(5):
        model.train()
        model.backbone.eval()
        one_epoch(model, train_loader, optimizer)


def linear_probe(encoder, train_loader, val_loader):
    classifier = nn.Sequential(nn.Dropout(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
    for epoch in range(5):
        encoder.eval()
        classifier.train()
        for x, y in train_loader:
            with torch.no_grad():
                features = encoder(x)
            optimizer.zero_grad()
            F.cross_entropy(classifier(features), y).backward()
            optimizer.step()
        classifier.eval()
        with torch.no_grad():
            for x, y in val_loader:
                print(F.cross_entropy(classifier(encoder(x)), y).item())


def frozen_part_in_the_step(silence, model, loader, optimizer, start: int):
    for epoch in range(10):
        for x, y in loader:
            if epoch > start:
                silence.eval()
                with torch.no_grad():
                    x = x * silence(x)
            loss = F.cross_entropy(model(x), y)
            if epoch <= start:
                loss = loss + F.mse_loss(silence(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def counted_by_hand(model, batches, val_loader, optimizer, every: int):
    step = 0
    for x, y in batches:
        if step % every == 0:
            model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        step += 1
        if step % every == 0:
            model.eval()
            with torch.no_grad():
                for a, b in val_loader:
                    print(F.cross_entropy(model(a), b).item())


def attack_while_training(model, loader, optimizer):
    for x, y in loader:
        model.eval()
        x = x.requires_grad_()
        gradient = torch.autograd.grad(F.cross_entropy(model(x), y), x)[0]
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x + gradient.sign()), y).backward()
        optimizer.step()


def final_test(model, train_loader, test_loader, optimizer):
    model.train()
    for epoch in range(5):
        one_epoch(model, train_loader, optimizer)
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y).item())


class Probe(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.Dropout())
        self.head = nn.Linear(width, 2)

    def train_head(self) -> None:
        self.head.train()

    def forward(self, x):
        return self.head(self.encoder(x))


def check_probe(probe, loader):
    probe.eval()
    with torch.no_grad():
        return sum((probe(x).argmax(1) == y).sum().item() for x, y in loader)


def one_of_two_networks(name: str, train_loader, val_loader):
    if name == "large":
        probe = Probe(1024)
    else:
        probe = Probe(64)
    optimizer = torch.optim.SGD(probe.head.parameters(), lr=0.1)
    for epoch in range(5):
        probe.train_head()
        one_epoch(probe, train_loader, optimizer)
        print(check_probe(probe, val_loader))


def copy_is_evaluated(train_loader, val_loader):
    model = Net()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        one_epoch(model, train_loader, optimizer)
        for own, new in zip(average.parameters(), model.parameters(), strict=True):
            own.data.lerp_(new.data, 0.1)
        print(check_probe(average, val_loader))


def average_is_evaluated(train_loader, val_loader):
    model = Net()
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        one_epoch(model, train_loader, optimizer)
        average.update_parameters(model)
        print(check_probe(average, val_loader))


def one_probe_for_each_view(views, train_loader, val_loader, make):
    for view in views:
        probe = make(view)
        optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
        for x, y in train_loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(probe(x), y).backward()
            optimizer.step()
        probe.eval()
        with torch.no_grad():
            print([probe(x).argmax(1) for x, _ in val_loader])


def evaluation_with_gradients_on(model, train_loader, test_loader, optimizer):
    def evaluate():
        model.eval()  # expect: train-not-restored
        return sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)

    model.train()
    for _ in range(10):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(evaluate())


def attack_in_eval_mode(model, loader, optimizer):
    for x, y in loader:
        model.eval()
        x.requires_grad_()
        F.cross_entropy(model(x), y).backward()
        attacked = x + 0.1 * x.grad.sign()
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(attacked.detach()), y).backward()
        optimizer.step()


def frozen_statistics_on_purpose(model, loader, optimizer):
    model.eval()
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def average_evaluated_instead(model: Net, train_loader, val_loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = copy.deepcopy(model).requires_grad_(False)
    model.train()
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()  # expect: train-not-restored
        average.eval()
        with torch.no_grad():
            print(sum((average(x).argmax(1) == y).sum().item() for x, y in val_loader))


def only_the_average_evaluated(model: Net, train_loader, val_loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = copy.deepcopy(model).requires_grad_(False)
    model.train()
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        average.eval()
        with torch.no_grad():
            print(sum((average(x).argmax(1) == y).sum().item() for x, y in val_loader))


def only_the_head_trains(model, head_parameters, train_loader, val_loader):
    optimizer = torch.optim.SGD(head_parameters, lr=0.1)
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader))
        model.head.train()


def nothing_put_back(model, head_parameters, train_loader, val_loader):
    optimizer = torch.optim.SGD(head_parameters, lr=0.1)
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()  # expect: train-not-restored
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader))
