"""TF-17877: the parts of a network each run the initialisation of all that is below them.

The encoder gives its last layer of each block a small scale, as GPT-2 does; when the whole model
then initialises its parts once more, that is lost.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
vocabulary, length = 40, 16
text = (torch.arange(4000) * 7 + torch.randint(0, 3, (4000,))) % vocabulary


def initialise(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = nn.Linear(dim, 4 * dim)
        self.outer = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.outer(F.gelu(self.inner(self.norm(x))))


class Encoder(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.apply(initialise)
        for block in self.blocks:
            nn.init.normal_(block.outer.weight, std=0.02 / (2 * depth) ** 0.5)

    def forward(self, x):
        return self.blocks(x)


class Model(nn.Module):
    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.encoder = Encoder(dim, depth)
        self.head = nn.Linear(dim, vocabulary)
        self.apply(initialise)

    def forward(self, x):
        return self.head(self.encoder(self.tokens(x)))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _step in range(60):
    starts = torch.randint(len(text) - length - 1, (8,))
    x = torch.stack([text[i : i + length] for i in starts])
    y = torch.stack([text[i + 1 : i + 1 + length] for i in starts])
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()
print("loss", loss.item())
