"""Anomaly detection with a GAN: the encoder's loop clears the encoder's gradients only."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 256), nn.LeakyReLU(0.2), nn.Linear(256, 100))

    def forward(self, image):
        return self.layers(image.flatten(1))


class Discriminator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))

    def forward(self, image):
        return self.layers(image.flatten(1))


def train_encoder(generator, loader, device, kappa: float):
    encoder, discriminator = Encoder().to(device), Discriminator().to(device)
    optimizer_E = torch.optim.Adam(encoder.parameters(), lr=2e-4)
    optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
    criterion = nn.MSELoss()
    adversarial = nn.BCEWithLogitsLoss()
    for real, _ in loader:
        real = real.to(device)
        optimizer_E.zero_grad()
        fake = generator(encoder(real))
        loss = criterion(fake, real) + kappa * criterion(discriminator(fake), discriminator(real))
        loss.backward()
        optimizer_E.step()

        ones = torch.ones(real.size(0), 1, device=device)
        d_loss = adversarial(discriminator(real), ones)
        d_loss.backward()  # expect: zero-grad-missing
        optimizer_D.step()
