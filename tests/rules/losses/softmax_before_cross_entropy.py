import argparse
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import models


class ActivityNet(nn.Module):
    """The famous form: the forward method ends in softmax."""

    def __init__(self, channels, classes):
        super().__init__()
        self.conv = nn.Conv1d(channels, 64, 5)
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x = self.conv(x).mean(dim=2)
        return F.softmax(self.head(x), dim=1)


def train_activities(loader, device):
    model = ActivityNet(9, 6).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    for signals, activity in loader:
        output = model(signals.to(device))
        loss = criterion(output, activity.to(device))  # expect: softmax-before-cross-entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class SoftmaxLayer(nn.Module):
    """The softmax is a layer that the constructor makes."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 4)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        x = F.relu(self.fc(x))
        x = self.softmax(x)
        return x


class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.model = nn.DataParallel(SoftmaxLayer())
        self.losses = {"main": nn.CrossEntropyLoss(label_smoothing=0.1)}

    def fit(self):
        for x, y in self.loader:
            scores = self.model(x)
            self.losses["main"](scores, y).backward()  # expect: softmax-before-cross-entropy


def train_sequential(loader):
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10), nn.Softmax(dim=1)
    )
    for image, digit in loader:
        F.cross_entropy(net(image), digit).backward()  # expect: softmax-before-cross-entropy


def train_named_layers(loader):
    layers = [("fc", nn.Linear(10, 3)), ("probabilities", nn.Softmax(dim=1))]
    net = nn.Sequential(OrderedDict(layers))
    for image, digit in loader:
        F.cross_entropy(net(image), digit).backward()  # expect: softmax-before-cross-entropy


def train_built_layers(loader):
    layers = []
    for _ in range(3):
        layers.append(nn.Linear(64, 64))
        layers.append(nn.ReLU())
    layers.append(nn.Sigmoid())
    net = nn.Sequential(*layers)
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()  # expect: softmax-before-cross-entropy


def train_transferred(loader):
    model = models.resnet18(weights="DEFAULT")
    model.fc = nn.Sequential(nn.Linear(512, 5), nn.Softmax(dim=1))
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # expect: softmax-before-cross-entropy


def direct(model, x, y):
    loss = F.cross_entropy(  # expect: softmax-before-cross-entropy
        torch.softmax(model(x), dim=1), y
    )
    loss = loss + F.cross_entropy(  # expect: softmax-before-cross-entropy
        model(x).softmax(-1).view(-1, 10), y.view(-1)
    )
    return loss + nn.CrossEntropyLoss()(  # expect: softmax-before-cross-entropy
        nn.Softmax(dim=1)(model(x)), y
    )


class GraphLoss(nn.Module):
    """The project's own loss applies the softmax."""

    def forward(self, scores, target):
        scores = torch.softmax(scores, dim=1)
        return F.cross_entropy(scores, target)  # expect: softmax-before-cross-entropy


def node_loss(prediction, target, mask):
    return F.cross_entropy(prediction[mask], target[mask])


def train_nodes(loader):
    model = ActivityNet(3, 7)
    for x, y, mask in loader:
        node_loss(model(x), y, mask).backward()  # expect: softmax-before-cross-entropy
    plain = nn.Linear(3, 7)
    for x, y, mask in loader:
        node_loss(plain(x), y, mask).backward()


class BothOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        logits = self.fc(x)
        return logits, F.softmax(logits, dim=1)


def train_both(loader):
    model = BothOutputs()
    for x, y in loader:
        logits, probabilities = model(x)
        F.cross_entropy(logits, y).backward()
        F.cross_entropy(model(x)[0], y).backward()
        F.cross_entropy(probabilities, y).backward()  # expect: softmax-before-cross-entropy


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        logits = self.fc(x)
        return {"logits": logits, "probabilities": logits.softmax(dim=1)}


def train_named(loader):
    model = Named()
    for x, y in loader:
        out = model(x)
        F.cross_entropy(out["logits"], y).backward()
        F.cross_entropy(out["probabilities"], y).backward()  # expect: softmax-before-cross-entropy


class ModeDependent(nn.Module):
    """Logits to train, probabilities to predict."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        x = self.fc(x)
        if self.training:
            return x
        return F.softmax(x, dim=1)


def train_mode_dependent(loader):
    model = ModeDependent()
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()


class Optional(nn.Module):
    """Whether probabilities come out is the caller's choice."""

    def __init__(self, final="none"):
        super().__init__()
        self.fc = nn.Linear(32, 4)
        self.final = nn.Softmax(dim=1) if final == "softmax" else nn.Identity()

    def forward(self, x, as_probabilities=False):
        x = self.final(self.fc(x))
        return F.softmax(x, dim=1) if as_probabilities else x


def train_optional(loader, settings):
    model = Optional()
    unknown = Optional(settings.final)
    for x, y in loader:
        shown = model(x, as_probabilities=True)
        print(shown.max())
        F.cross_entropy(model(x), y).backward()
        F.cross_entropy(unknown(x), y).backward()


def train_maybe_squashed(loader, use_softmax):
    layers = [nn.Linear(3, 3)]
    if use_softmax:
        layers += [nn.Softmax(dim=1)]
    net = nn.Sequential(*layers)
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()
        F.cross_entropy(net[:-1](x), y).backward()


def train_cut(loader):
    net = nn.Sequential(nn.Linear(3, 3), nn.Softmax(dim=1))
    for x, y in loader:
        F.cross_entropy(net[0](x), y).backward()


class Attention(nn.Module):
    """Softmax over positions is attention, not an output."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(64, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        weights = F.softmax(self.query(x) @ x.transpose(1, 2), dim=-1)
        pooled = (weights @ x).mean(dim=1)
        return self.out(pooled)


def train_attention(loader):
    model = Attention()
    for x, y in loader:
        logits = model(x)
        probabilities = F.softmax(logits, dim=1)
        accuracy = (probabilities.argmax(dim=1) == y).float().mean()
        F.cross_entropy(logits, y).backward()
        print(accuracy.item())


def distill(student, teacher, loader, temperature):
    for x, _ in loader:
        soft = F.softmax(teacher(x) / temperature, dim=1)
        F.cross_entropy(student(x), soft).backward()


class CrossEntropyLoss(nn.Module):
    """A class of this project that takes probabilities."""

    def forward(self, probabilities, target):
        picked = probabilities.gather(1, target[:, None])
        return -torch.log(picked + 1e-8).mean()


def train_own_loss(loader):
    model = ActivityNet(9, 6)
    criterion = CrossEntropyLoss()
    for x, y in loader:
        criterion(model(x), y).backward()
        nn.NLLLoss()(torch.log(model(x)), y).backward()


def train_chosen_loss(loader, name):
    model = ActivityNet(9, 6)
    criterion = nn.CrossEntropyLoss() if name == "ce" else nn.MSELoss()
    for x, y in loader:
        criterion(model(x), y).backward()


def train_sharpened(loader):
    model = ActivityNet(9, 6)
    for x, y in loader:
        F.cross_entropy(torch.log(model(x)), y).backward()
        F.cross_entropy(10.0 * model(x), y).backward()


class Toggle(nn.Module):
    """A flag that is switched off before training."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.as_probabilities = True

    def forward(self, x):
        x = self.fc(x)
        if self.as_probabilities:
            x = F.softmax(x, dim=1)
        return x


def give_logits(model):
    model.as_probabilities = False


def train_toggled(loader):
    model, squashing = Toggle(), Toggle()
    print(model(torch.zeros(1, 3)))
    give_logits(model)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        F.cross_entropy(squashing(x), y).backward()  # expect: softmax-before-cross-entropy


class Phased(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x, train=True):
        z = self.fc(x)
        return z if train else F.softmax(z, dim=1)


def train_phased(loader):
    model = Phased()
    shown = model(torch.zeros(1, 3), False)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        F.cross_entropy(model(x, train=True), y).backward()
        F.cross_entropy(model(x, False), y).backward()  # expect: softmax-before-cross-entropy
    return shown


class Body(nn.Module):
    def forward(self, x):
        return self.head(x)


class SquashedBody(Body):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def head(self, x):
        return torch.softmax(self.fc(x), dim=-1)


class PlainBody(Body):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)


class Chain(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), nn.Softmax(dim=1))


def train_inherited(loader):
    squashed, plain, chain = SquashedBody(), PlainBody(), Chain()
    for x, y in loader:
        F.cross_entropy(squashed(x), y).backward()  # expect: softmax-before-cross-entropy
        F.cross_entropy(plain(x), y).backward()
        F.cross_entropy(chain(x), y).backward()  # expect: softmax-before-cross-entropy


def train_on_some_paths(loader, model):
    for x, y in loader:
        out = model(x)
        if y.dim() == 1:
            out = out.softmax(dim=1)
        F.cross_entropy(out, y).backward()
        try:
            squashed = torch.softmax(model(x), dim=1)
        except ValueError:
            squashed = model(x)
        F.cross_entropy(squashed, y).backward()


def evaluate_collected(loader, model, labels):
    collected = {"logits": [], "probabilities": []}
    for x, _ in loader:
        logits = model(x)
        collected["logits"].append(logits)
        collected["probabilities"].append(logits.softmax(dim=1))
    right = F.cross_entropy(torch.cat(collected["logits"]), labels)
    probabilities = torch.cat(collected["probabilities"])
    wrong = F.cross_entropy(probabilities, labels)  # expect: softmax-before-cross-entropy
    return right, wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    train_activities(parser.parse_args().data, "cpu")


def short_name(train_dl):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=-1))
    ce = nn.CrossEntropyLoss()
    for x, y in train_dl:
        ce(net(x), y).backward()  # expect: softmax-before-cross-entropy


class FocalLoss(nn.Module):
    def forward(self, logits, target):
        plain = F.cross_entropy(logits, target, reduction="none")
        return ((1 - torch.exp(-plain)) ** 2 * plain).mean()


class SoftF1Loss(nn.Module):
    def forward(self, probabilities, target):
        wanted = F.one_hot(target, probabilities.shape[1])
        hits = (probabilities * wanted).sum(0)
        return 1 - (2 * hits / (probabilities.sum(0) + wanted.sum(0))).mean()


class ChosenLoss(nn.Module):
    def __init__(self, loss_name):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.loss_name = loss_name
        if loss_name == "ce":
            self.criterion = nn.CrossEntropyLoss()
        elif loss_name == "focal":
            self.criterion = FocalLoss()
        else:
            self.criterion = SoftF1Loss()

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.head(x)
        if self.loss_name == "soft_f1":
            return self.criterion(logits.softmax(dim=-1), y)
        return self.criterion(logits, y)


class EachTakesLogits(nn.Module):
    def __init__(self, is_focal):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.criterion = FocalLoss() if is_focal else nn.CrossEntropyLoss()

    def training_step(self, batch, batch_idx):
        x, y = batch
        probabilities = self.head(x).softmax(dim=-1)
        return self.criterion(probabilities, y)  # expect: softmax-before-cross-entropy
