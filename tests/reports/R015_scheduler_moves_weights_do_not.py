"""A diffusion trainer with accelerate: the learning rate moves, the weights never do."""

import torch
from accelerate import Accelerator
from torch.nn import functional as F


def main(unet, noise_scheduler, train_dataloader, epochs):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    unet, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        unet, optimizer, train_dataloader, lr_scheduler
    )
    for _ in range(epochs):
        for images in train_dataloader:
            noise = torch.randn_like(images)
            timesteps = torch.randint(0, 1000, (len(images),))
            noisy = noise_scheduler.add_noise(images, noise, timesteps)
            loss = F.mse_loss(unet(noisy, timesteps).sample, noise)
            accelerator.backward(loss)  # expect: optimizer-step-missing
            lr_scheduler.step()
            optimizer.zero_grad()
