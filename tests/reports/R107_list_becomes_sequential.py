"""A backbone that collects its layers in a list before it makes a container of them."""
# never: modules-in-plain-list

from torch import nn


class Stage(nn.Module):
    def __init__(self, inside, outside, depth):
        super().__init__()
        layers = []
        for i in range(depth):
            layers.append(nn.Conv2d(inside if i == 0 else outside, outside, 3, padding=1))
            layers.append(nn.BatchNorm2d(outside))
            layers.append(nn.ReLU(inplace=True))
        self.net = nn.Sequential(*layers)
        heads = [nn.Linear(outside, n) for n in (10, 100)]
        self.heads = nn.ModuleList(heads)

    def forward(self, x):
        x = self.net(x).mean((2, 3))
        return [head(x) for head in self.heads]
