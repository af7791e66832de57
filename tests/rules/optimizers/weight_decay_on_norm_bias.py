import argparse

import torch
import torch.nn as nn
from torch.optim import SGD, Adam, AdamW


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Language(nn.Module):
    def __init__(self, words=1000, width=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(4)])

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return x


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU())
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4, elementwise_affine=False)

    def forward(self, x):
        return self.norm(self.fc(x))


def explicit(device):
    model = nn.DataParallel(Language().to(device))
    return torch.optim.AdamW(  # expect: weight-decay-on-norm-bias
        model.parameters(), lr=3e-4, weight_decay=0.1
    )


def defaults():
    model = Language()
    first = AdamW(model.parameters(), lr=1e-4)  # expect: weight-decay-on-norm-bias
    second = Adam(model.parameters(), lr=1e-4)
    third = AdamW(model.parameters(), lr=1e-4, weight_decay=0)
    fourth = AdamW(model.parameters(), lr=1e-4, weight_decay=1e-8)
    return first, second, third, fourth


def coupled():
    model = Convolutional()
    return Adam(  # expect: weight-decay-on-norm-bias
        list(model.parameters()), lr=1e-3, weight_decay=1e-4
    )


def classic_recipe():
    """SGD on a convolutional network decays its batch norms, too."""
    model = Convolutional()
    return SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)


def sgd_on_language():
    model = Language()
    return SGD(model.parameters(), lr=0.1, weight_decay=1e-4)  # expect: weight-decay-on-norm-bias


def nothing_to_spare():
    model = Plain()
    return AdamW(model.parameters(), weight_decay=0.1)


def only_the_head(model: Convolutional):
    return AdamW(model.head.parameters(), weight_decay=0.1)


def split_by_dimension():
    model = Language()
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return AdamW(groups, lr=3e-4)


def build(params, options):
    return AdamW(params, lr=options.lr, weight_decay=options.decay)


def through_a_helper(options):
    model = Language()
    vectors = [p for name, p in model.named_parameters() if name.endswith("bias") or "norm" in name]
    return build([{"params": vectors, "weight_decay": 0.0}], options)


def from_the_command_line():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wd", type=float, default=0.0)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    options = parser.parse_args()
    model = Language()
    first = AdamW(model.parameters(), weight_decay=options.wd)
    second = AdamW(  # expect: weight-decay-on-norm-bias
        model.parameters(), weight_decay=options.weight_decay
    )
    return first, second


def selected():
    model = Language()
    return AdamW(filter(lambda p: p.requires_grad, model.parameters()), weight_decay=0.1)


def unseen(model, settings):
    coupled = Adam(model.parameters(), weight_decay=5e-4)
    momentum = SGD(model.parameters(), lr=0.1, weight_decay=5e-4)
    decoupled = AdamW(model.parameters(), weight_decay=0.1)  # expect: weight-decay-on-norm-bias
    seen, decay = Language(), settings.decay
    configured = AdamW(seen.parameters(), weight_decay=decay)  # expect: weight-decay-on-norm-bias
    return coupled, momentum, decoupled, configured


def fine_tuned():
    model = Language()
    for parameter in model.embed.parameters():
        parameter.requires_grad = False
    return AdamW(model.parameters(), weight_decay=0.1)
