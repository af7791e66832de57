"""GPT in nanoGPT's style: get_batch without a DataLoader, accumulation, manual warm-up, estimate."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
vocabulary, block, batch, accumulate, rate = 40, 24, 8, 2, 1e-3
data = (torch.arange(6000) * 7 + torch.randint(0, 3, (6000,))) % vocabulary
splits = {"train": data[:5000], "val": data[5000:]}


def get_batch(split):
    source = splits[split]
    starts = torch.randint(len(source) - block - 1, (batch,))
    x = torch.stack([source[i : i + block] for i in starts])
    y = torch.stack([source[i + 1 : i + 1 + block] for i in starts])
    return x, y


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(c, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, dim=32, depth=2, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Embedding(block, dim)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.apply(self.init)
        self.tokens.weight = self.head.weight

    def init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, x, targets=None):
        h = self.drop(self.tokens(x) + self.positions(torch.arange(x.shape[1])))
        for layer in self.blocks:
            h = layer(h)
        logits = self.head(self.norm(h))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1), ignore_index=-1)
        return logits, loss


@torch.no_grad()
def estimate(model):
    model.eval()
    losses = [model(*get_batch("val"))[1].item() for _ in range(4)]
    model.train()
    return sum(losses) / len(losses)


def learning_rate(step):
    if step < 10:
        return rate * (step + 1) / 10
    return rate * 0.5 * (1 + math.cos(math.pi * min(1, step / 100)))


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1)
for step in range(60):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step)
    if step % 20 == 0:
        print("val", estimate(model))
    for _ in range(accumulate):
        x, y = get_batch("train")
        logits, loss = model(x, y)
        (loss / accumulate).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
