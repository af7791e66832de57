"""Vision transformer with parameter groups and a warm-up schedule."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.randn(256, 3, 16, 16)
labels = torch.arange(256) % 4
images += labels[:, None, None, None] * 0.5
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)


class ViT(nn.Module):
    def __init__(self, dim=32, depth=2, heads=4, classes=4):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.randn(1, 17, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim * 4, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.position
        return self.head(self.norm(self.encoder(x))[:, 0])


model = ViT()
decay = [p for p in model.parameters() if p.dim() > 1]
rest = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=1e-3
)
total = 4 * len(loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer,
    lambda step: min(1, (step + 1) / 8) * 0.5 * (1 + math.cos(math.pi * min(1, step / total))),
)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    print("loss", loss.item())
