"""mmpretrain-702: the backbone freezes its first stages in train(), which nobody calls."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = torch.randn(320, 3, 16, 16), torch.arange(320) % 4
images += labels[:, None, None, None] * 0.3
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)


class Backbone(nn.Module):
    def __init__(self, frozen_stages=1):
        super().__init__()
        self.frozen_stages = frozen_stages
        self.stages = nn.ModuleList([self.stage(3, 8), self.stage(8, 16)])
        self.head = nn.Linear(16, 4)

    def stage(self, inner, outer):
        convolution = nn.Conv2d(inner, outer, 3, 2, 1, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(outer), nn.ReLU())

    def freeze(self):
        for stage in self.stages[: self.frozen_stages]:
            stage.eval().requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        if mode:
            self.freeze()
        return self

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean((2, 3)))


model = Backbone()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
