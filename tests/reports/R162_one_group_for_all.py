"""Self-supervised pre-training of a vision transformer with one parameter group."""

import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, width=192, depth=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(
            *[nn.TransformerEncoderLayer(width, 3, batch_first=True) for _ in range(depth)]
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.norm(self.blocks(tokens)).mean(dim=1)


def pretrain(loader, similarity):
    encoder = Encoder()
    optimizer = torch.optim.AdamW(  # expect: weight-decay-on-norm-bias
        encoder.parameters(), lr=1e-3, weight_decay=0.05
    )
    for first, second in loader:
        optimizer.zero_grad()
        loss = similarity(encoder(first), encoder(second))
        loss.backward()
        optimizer.step()
