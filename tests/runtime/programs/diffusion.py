"""Denoising diffusion on vectors: random timesteps, noise as target, bf16 autocast, EMA weights."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(320, 16) * 0.3 + 1), batch_size=32, shuffle=True)
steps = 50
alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.1, steps), 0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(steps, 32)
        self.inner = nn.Linear(16, 32)
        self.body = nn.Sequential(nn.SiLU(), nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 16))

    def forward(self, x, t):
        return self.body(self.inner(x) + self.time(t))


model = Denoiser()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(4):
    model.train()
    for (clean,) in loader:
        t = torch.randint(0, steps, (len(clean),))
        noise = torch.randn_like(clean)
        scale = alphas[t][:, None]
        noisy = scale.sqrt() * clean + (1 - scale).sqrt() * noise
        with torch.autocast("cpu", dtype=torch.bfloat16):
            prediction = model(noisy, t)
        loss = F.mse_loss(prediction.float(), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.lerp_(fast, 0.05)
    print("loss", loss.item())
