"""An encoder for tables: the first blocks are shared by all steps."""
# never: module-list-multiplication

from torch import nn


class FeatureTransformer(nn.Module):
    def __init__(self, shared_layers, width):
        super().__init__()
        self.shared = shared_layers
        self.specific = nn.Linear(width, width)

    def forward(self, x):
        for layer in self.shared:
            x = layer(x)
        return self.specific(x)


class Encoder(nn.Module):
    def __init__(self, width, n_steps, n_shared):
        super().__init__()
        shared_layers = nn.ModuleList([nn.Linear(width, width) for _ in range(n_shared)])
        self.transformers = nn.ModuleList([FeatureTransformer(shared_layers, width) for _ in range(n_steps)])
        shared_block = nn.Linear(width, width)
        self.blocks = nn.ModuleList([shared_block] * n_steps)

    def forward(self, x):
        return sum(block(transform(x)) for block, transform in zip(self.blocks, self.transformers))
