import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


def direct(model, text, label):
    loss = F.nll_loss(F.softmax(model(text), dim=1), label)  # expect: nll-without-log
    loss = loss + F.nll_loss(F.log_softmax(model(text), dim=1), label)
    loss = loss + F.nll_loss(torch.log(F.softmax(model(text), dim=1)), label)
    return loss + F.nll_loss(torch.log(F.softmax(model(text), dim=1) + 1e-9), label)


class Headlines(nn.Module):
    def __init__(self, words, classes):
        super().__init__()
        self.embed = nn.Embedding(words, 50)
        self.fc = nn.Linear(50, classes)

    def forward(self, x):
        x = self.embed(x).mean(dim=1)
        return F.softmax(self.fc(x), dim=1)


class RawScores(Headlines):
    def forward(self, x):
        return self.fc(self.embed(x).mean(dim=1))


class LogScores(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 3), nn.LogSoftmax(dim=1)
        )

    def forward(self, x):
        return self.body(x)


def train(loader):
    wrong, raw, right = Headlines(100, 3), RawScores(100, 3), LogScores()
    criterion = nn.NLLLoss()
    for x, y in loader:
        criterion(wrong(x), y).backward()  # expect: nll-without-log
        criterion(raw(x), y).backward()  # expect: nll-without-log
        criterion(right(x), y).backward()
        criterion(torch.log_softmax(raw(x), dim=1), y).backward()
        criterion(wrong(x).log(), y).backward()


def other_likelihoods(model, x, y):
    gaussian, poisson = nn.GaussianNLLLoss(), nn.PoissonNLLLoss()
    mean = F.softmax(model(x), dim=1)
    return gaussian(mean, y, torch.ones_like(y)) + poisson(mean, y)


def policy_gradient(policy, state, reward):
    distribution = Categorical(F.softmax(policy(state), dim=-1))
    action = distribution.sample()
    return -distribution.log_prob(action) * reward


class Adaptive(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(64, 1000, [10, 100])

    def forward(self, hidden):
        return self.softmax.log_prob(hidden)


def train_adaptive(loader):
    model = Adaptive()
    for hidden, token in loader:
        F.nll_loss(model(hidden), token).backward()


class Switchable(nn.Module):
    def __init__(self, log):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.log = log

    def forward(self, x):
        x = self.fc(x)
        if self.log:
            return F.log_softmax(x, dim=1)
        return F.softmax(x, dim=1)


def train_switchable(loader, options):
    model, log_model = Switchable(options.log), Switchable(True)
    for x, y in loader:
        F.nll_loss(model(x), y).backward()
        F.nll_loss(log_model(x), y).backward()


def mixed(pointer, generator, switch, target):
    """A mixture of two distributions, then the logarithm."""
    p = switch * F.softmax(pointer, dim=1) + (1 - switch) * F.softmax(generator, dim=1)
    return F.nll_loss(torch.log(p), target)


class Scores(nn.Module):
    def __init__(self, as_probabilities=False):
        super().__init__()
        self.as_probabilities = as_probabilities
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = self.last(x)
        return F.softmax(x, dim=1) if self.as_probabilities else F.log_softmax(x, dim=1)


class LossOrScores(nn.Module):
    def __init__(self, scores, criterion):
        super().__init__()
        self.scores, self.criterion = scores, criterion

    def forward(self, x, y=None, *, size=None):
        if size is None:
            return self.criterion(self.scores(x), y)
        return F.interpolate(self.scores(x), size)


def segment(loader):
    module = LossOrScores(Scores(as_probabilities=True), nn.NLLLoss(ignore_index=-1))
    for x, label in loader:
        size = (label.shape[0], label.shape[1])
        yield module(x, size=size)
