"""Variational autoencoder with a summed loss, as in pytorch/examples."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(400, 64)
train_loader = DataLoader(TensorDataset(images[:320]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(images[320:]), batch_size=32)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(64, 48)
        self.mean = nn.Linear(48, 8)
        self.logvar = nn.Linear(48, 8)
        self.decoder = nn.Linear(8, 48)
        self.output = nn.Linear(48, 64)

    def forward(self, x):
        h = F.relu(self.encoder(x))
        mean, logvar = self.mean(h), self.logvar(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.output(F.relu(self.decoder(z)))), mean, logvar


def loss_function(reconstruction, x, mean, logvar):
    error = F.binary_cross_entropy(reconstruction, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
    return error + divergence


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for (x,) in train_loader:
        optimizer.zero_grad()
        loss = loss_function(*model(x)[:1], x, *model(x)[1:])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        total = sum(loss_function(*model(x)[:1], x, *model(x)[1:]).item() for (x,) in test_loader)
    print("test", total / 80)
