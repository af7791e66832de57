import torch.nn as nn
import torch.nn.functional as F


class Base(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Linear(16, 16)
        self.head = nn.Linear(16, classes)


class Squashed(Base):
    def forward(self, x):
        return F.softmax(self.head(self.body(x)), dim=1)


class Plain(Base):
    def forward(self, x):
        return self.head(self.body(x))


def build(classes):
    model = Squashed(classes)
    return model.cuda()


def build_named(name, classes):
    return {"squashed": Squashed, "plain": Plain}[name](classes)
