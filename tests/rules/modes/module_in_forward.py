import torch
from torch import nn
from torch.nn import functional as F


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)

    def forward(self, x):
        x = nn.Dropout(p=0.5)(self.first(x))  # expect: module-in-forward
        drop = nn.Dropout2d(0.1)  # expect: module-in-forward
        x = drop(x)
        x = nn.BatchNorm1d(8)(x)  # expect: module-in-forward
        head = nn.Linear(x.shape[1], 10)  # expect: module-in-forward
        rnn = nn.LSTM(10, 10).to(x.device)  # expect: module-in-forward
        return rnn(head(x))[0]


class Stateless(nn.Module):
    def forward(self, x, y):
        x = nn.ReLU()(x)
        x = nn.Softmax(dim=1)(x)
        x = nn.Upsample(scale_factor=2)(x)
        x = nn.LayerNorm(x.shape[1:], elementwise_affine=False)(x)
        x = nn.BatchNorm2d(3, affine=False)(x)
        x = F.dropout(x, 0.5, training=self.training)
        return nn.CrossEntropyLoss()(nn.Flatten()(x), y)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = None
        self.extra = {}

    def forward(self, x):
        if self.fc is None:
            self.fc = nn.Linear(x.shape[1], 10).to(x.device)
        if "out" not in self.extra:
            self.extra["out"] = nn.Linear(10, 2)
            self.add_module("out", nn.Linear(10, 2))
        return self.extra["out"](self.fc(x))


class FixedKernel(nn.Module):
    def forward(self, x):
        blur = nn.Conv2d(1, 1, 3, bias=False)
        blur.weight = nn.Parameter(torch.ones(1, 1, 3, 3) / 9, requires_grad=False)
        return blur(x)


class Builder:
    def forward(self, x):
        return nn.Linear(3, 3)


class Makes(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = self.build(3)

    def build(self, width):
        return nn.Linear(width, width)

    def forward(self, x):
        return self.out(x)
