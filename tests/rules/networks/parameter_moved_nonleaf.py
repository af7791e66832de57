import torch
import torch.nn as nn
from torch.nn import Parameter

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Prompt(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(length, width)).cuda()  # expect: parameter-moved-nonleaf
        self.scale = Parameter(torch.ones(1)) * 0.01  # expect: parameter-moved-nonleaf
        self.bias = 0.1 * nn.Parameter(torch.zeros(width), requires_grad=True)  # expect: parameter-moved-nonleaf
        self.right = nn.Parameter(torch.randn(length, width, device=device) * 0.02)
        self.moved = nn.Parameter(torch.randn(width).to(device))
        self.fixed = nn.Parameter(torch.ones(width), requires_grad=False).to(device)
        self.again = nn.Parameter(torch.ones(width)).requires_grad_()
        self.layer = nn.Linear(width, width).to(device)
        self.start = nn.Parameter(torch.ones(width)).data.clone()

    def forward(self, x):
        weight = nn.Parameter(torch.eye(3)).to(x.device)
        return self.layer(x) @ weight


class LatentCodes:
    def __init__(self, count):
        self.codes = nn.Parameter(torch.zeros(count)).cuda()


def fit_weight(x, y):
    w = torch.randn(8, requires_grad=True) * 0.01  # expect: parameter-moved-nonleaf
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    optimizer.step()


def descend(x, y):
    w = torch.zeros(8, requires_grad=True).to(device)  # expect: parameter-moved-nonleaf
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad


def parameter_for_optimizer():
    latent = nn.Parameter(torch.zeros(8)).to(device)  # expect: parameter-moved-nonleaf
    return torch.optim.Adam([{"params": latent, "lr": 0.1}])


def on_purpose():
    w = (torch.randn(8) * 0.01).to(device).requires_grad_()
    z = torch.randn(8, requires_grad=True) * 2
    z.retain_grad()
    hidden = torch.randn(8, requires_grad=True).to(device)
    (w * z * hidden).sum().backward()
    return w.grad, z.grad
