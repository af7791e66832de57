"""Modules with and without the constructor of their base."""

import dataclasses
import functools

import lightning
import torch
from registry import register_encoder
from torch import nn
from torch.utils.data import Dataset


class Trunk(nn.Module):
    def __init__(self, width):  # expect: missing-super-init
        self.conv = nn.Conv1d(4, width, 15)
        self.pool = nn.MaxPool1d(2)

    def forward(self, x):
        return self.pool(self.conv(x))


class Apply(nn.Module):
    def __init__(self, function):  # expect: missing-super-init
        """Keeps the function."""
        self.function = function

    def forward(self, x):
        return self.function(x)


class Lit(lightning.LightningModule):
    def __init__(self, model):  # expect: missing-super-init
        self.model = model

    def training_step(self, batch, index):
        return self.model(batch).mean()


class Late(nn.Module):
    def __init__(self, width):
        self.width = width
        self.fc = nn.Linear(width, width)  # expect: missing-super-init
        self.out = nn.Linear(width, 1)
        super().__init__()

    def forward(self, x):
        return self.out(self.fc(x))


class LateParameter(nn.Module):
    def __init__(self, width):
        self.scale = nn.Parameter(torch.ones(width))  # expect: missing-super-init
        super(LateParameter, self).__init__()

    def forward(self, x):
        return x * self.scale


class NotCalled(nn.Module):
    def __init__(self, width):  # expect: missing-super-init
        super().__init__
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class Base(nn.Module):
    def __init__(self, width):
        nn.Module.__init__(self)
        self.width = width

    def forward(self, x):
        return x


class Derived(Base):
    def __init__(self, width):
        Base.__init__(self, width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class ForgetfulDerived(Base):
    def __init__(self, width):  # expect: missing-super-init
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class NoConstructor(Base):
    def forward(self, x):
        return 2 * x


class PlainFirst(nn.Module):
    def __init__(self, width):
        self.width = width
        self.sizes = [width, width]
        super(PlainFirst, self).__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class ThroughHelper(nn.Module):
    def __init__(self, width):
        self._start()
        self.fc = nn.Linear(width, width)

    def _start(self):
        super().__init__()

    def forward(self, x):
        return self.fc(x)


def start_module(module):
    nn.Module.__init__(module)


class ThroughFunction(nn.Module):
    def __init__(self, width):
        start_module(self)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


def initialised(constructor):
    @functools.wraps(constructor)
    def wrapped(self, *arguments):
        nn.Module.__init__(self)
        constructor(self, *arguments)

    return wrapped


class Wrapped(nn.Module):
    @initialised
    def __init__(self, width):
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


@dataclasses.dataclass(eq=False)
class Scale(nn.Module):
    width: int

    def __post_init__(self):
        super().__init__()
        self.fc = nn.Linear(self.width, self.width)

    def forward(self, x):
        return self.fc(x)


class Made(nn.Module):
    def __new__(cls, *arguments):
        made = super().__new__(cls)
        nn.Module.__init__(made)
        return made

    def __init__(self, width):
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class Abstract(nn.Module):
    def __init__(self):
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError


class Windows(Dataset):
    def __init__(self, series, length):
        self.series = series
        self.length = length

    def __getitem__(self, index):
        return self.series[index : index + self.length]


class Schedule:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def forward(self):
        self.optimizer.step()


# Set before the call, in more ways than one.


class UnderACondition(nn.Module):
    def __init__(self, width, deep=True):
        if deep:
            self.fc = nn.Linear(width, width)  # expect: missing-super-init
        super().__init__()
        self.width = width

    def forward(self, x):
        return self.fc(x)


class BufferTooEarly(nn.Module):
    def __init__(self, width):
        self.register_buffer("mask", torch.ones(width))  # expect: missing-super-init
        super().__init__()

    def forward(self, x):
        return x * self.mask


class TwoAtOnce(nn.Module):
    def __init__(self, width):
        self.first, self.second = nn.Linear(width, 8), nn.Linear(8, 2)  # expect: missing-super-init
        super().__init__()

    def forward(self, x):
        return self.second(self.first(x))


class NoForwardOfItsOwn(nn.Sequential):
    def __init__(self, width):
        self.activation = nn.ReLU()  # expect: missing-super-init
        super().__init__(nn.Linear(width, width), self.activation)


class OnlyEncodes(nn.Module):
    def __init__(self, width):
        self.fc = nn.Linear(width, width)  # expect: missing-super-init
        super().__init__()

    def encode(self, x):
        return self.fc(x)


class SettingsFirst(nn.Module):
    """Plain attributes, and lists, may be set before."""

    def __init__(self, width):
        self.width = width
        self.sizes, self.act = [width, 2 * width], torch.relu
        if width > 8:
            self.depth = int(width / 8)
        layers = [nn.Linear(width, width), nn.ReLU()]
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.act(self.body(x))


@register_encoder("mlp")
class Registered(nn.Module):
    def __init__(self, width):  # expect: missing-super-init
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)
