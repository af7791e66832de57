"""Networks that keep their layers in lists and dicts of several kinds."""

from collections import OrderedDict

import torch
import torchvision
from torch import nn
from torch.nn import BatchNorm1d, Linear


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.layer(x))


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Recommender(nn.Module):
    def __init__(self, sizes, width, depth, heads):
        super().__init__()
        self.hidden = [nn.Linear(width, width) for _ in range(depth)]  # expect: modules-in-plain-list
        self.blocks = [  # expect: modules-in-plain-list
            Block(width),
            Block(width),
        ]
        self.heads = {"click": Linear(width, 1), "buy": Linear(width, 1)}  # expect: modules-in-plain-list
        self.embeddings = {n: nn.Embedding(size, width) for n, size in sizes}  # expect: modules-in-plain-list
        self.norms = []  # expect: modules-in-plain-list
        for _ in range(depth):
            norm = BatchNorm1d(width)
            self.norms.append(norm)
        towers = []
        for _ in range(heads):
            towers.append(nn.Sequential(nn.Linear(width, width), nn.ReLU()))
        self.towers = towers  # expect: modules-in-plain-list
        self.drops: list[nn.Module] = [nn.Dropout(0.1), nn.Dropout(0.2)]  # expect: modules-in-plain-list
        self.pairs = [(Linear(width, width), nn.ReLU()) for _ in range(depth)]  # expect: modules-in-plain-list

    def forward(self, x):
        for layer, norm in zip(self.hidden, self.norms):
            x = norm(layer(x))
        return self.heads["click"](self.blocks[0](x)), len(self.towers)


class Channels(nn.Module):
    def __init__(self, channels, length, individual):
        super().__init__()
        self.individual = individual
        if individual:
            self.trend = []  # expect: modules-in-plain-list
            for i in range(channels):
                self.trend.append(nn.Linear(length, length))
                self.trend[i].weight = nn.Parameter(torch.ones(length, length))
        else:
            self.trend = nn.Linear(length, length)
            self.trend.weight = nn.Parameter(torch.ones(length, length))

    def forward(self, x):
        if self.individual:
            return torch.stack([layer(x) for layer in self.trend])
        return self.trend(x)


class Registered(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        layers = []
        for _ in range(depth):
            layers.append(nn.Linear(width, width))
            layers.append(nn.ReLU())
        self.net = nn.Sequential(*layers)
        self.stages = nn.ModuleList([Block(width) for _ in range(depth)])
        self.convs = [nn.Conv1d(width, width, 3) for _ in range(depth)]
        self.convs = nn.ModuleList(self.convs)
        extra = [nn.Linear(width, width) for _ in range(depth)]
        self.extra = nn.ModuleList(extra)
        self.first = Block(width)
        self.second = Block(width)
        self.order = [self.first, self.second]
        self.kept = [Block(width), Block(width)]
        self.kept_a, self.kept_b = self.kept
        third = Block(width)
        self.third = third
        self.others = [third, self.first]
        self.names = ["a", "b"]
        self.sizes = [int(width), int(depth)]


class AddedByHand(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = [nn.Linear(width, width) for _ in range(depth)]
        for i, layer in enumerate(self.layers):
            self.add_module(f"layer{i}", layer)


class SetByHand(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = []
        for i in range(depth):
            layer = nn.Linear(width, width)
            setattr(self, f"layer{i}", layer)
            self.layers.append(layer)


class Student(nn.Module):
    def __init__(self, teacher, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.model = [teacher]
        self.clip = [torchvision.models.resnet18()]
        self.critic = [Block(width)]
        self.teachers = [Block(width), Block(width)]
        self.features = [Block(width).eval(), Block(width).eval()]
        # stays out of the state_dict on purpose
        self.references = [Block(width), Block(width)]


class Stateless(nn.Module):
    def __init__(self):
        super().__init__()
        self.activations = [nn.ReLU(), nn.GELU(), Swish()]
        self.losses = [nn.CrossEntropyLoss(), nn.MSELoss()]
        self.transforms = [torchvision.transforms.CenterCrop(224), torchvision.transforms.ToTensor()]
        self.pools = {"max": nn.MaxPool2d(2), "mean": nn.AvgPool2d(2)}


class OwnBooks(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = [nn.Linear(width, width), nn.Linear(width, width)]

    def parameters(self, recurse=True):
        for layer in self.layers:
            yield from layer.parameters()


class Ensemble:
    def __init__(self, width, members):
        self.models = [Block(width) for _ in range(members)]
        self.optimizers = [torch.optim.Adam(model.parameters()) for model in self.models]


class PutIntoDict(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.heads = {}  # expect: modules-in-plain-list
        for task in tasks:
            self.heads[task] = nn.Linear(8, 1)

    def forward(self, x):
        return {task: head(x) for task, head in self.heads.items()}


class PutIntoModuleDict(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.heads = nn.ModuleDict()
        self.sizes = {}
        for task in tasks:
            self.heads[task] = nn.Linear(8, 1)
            self.sizes[task] = 1

    def forward(self, x):
        return {task: head(x) for task, head in self.heads.items()}


class FoundByKeyAndRegistered(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.convolutions = OrderedDict()
        for scale in range(scales):
            self.convolutions[("up", scale)] = nn.Conv2d(8, 8, 3)
        self.decoder = nn.ModuleList(list(self.convolutions.values()))

    def forward(self, x):
        return self.convolutions[("up", 0)](x)


class RegisteredByComprehension(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(depth)]
        self.registered = nn.ModuleList([layer for layer in self.layers])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class RegisteredAsCopy(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(depth)]
        self.body = nn.Sequential(*tuple(self.layers))


class FoundByKeyAlone(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.convolutions = OrderedDict()  # expect: modules-in-plain-list
        for scale in range(scales):
            self.convolutions[("up", scale)] = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        for _, convolution in enumerate(list(self.convolutions.values())):
            x = convolution(x)
        return x


class RegisteredInTheEnd(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.decoder = {}
        for level in range(levels):
            self.decoder[f"up{level}"] = nn.Conv2d(8, 8, 3)
        self.decoder = nn.ModuleDict({k: v for k, v in reversed(self.decoder.items())})


class RegisteredWithOthers(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.heads = {task: nn.Linear(8, 1) for task in tasks}
        self.all_heads = nn.ModuleDict({**self.heads, "all": nn.Linear(8, 8)})
