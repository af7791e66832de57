"""Diffusion: the average is copied into the network for sampling, and stays there."""


def train(unet, ema, loader, optimizer, noise_loss, sample, epochs: int) -> None:
    for epoch in range(epochs):
        unet.train()
        for images in loader:
            optimizer.zero_grad()
            noise_loss(unet, images).backward()
            optimizer.step()
            ema.step(unet.parameters())
        ema.copy_to(unet.parameters())  # expect: ema-swap-not-restored
        sample(unet, epoch)
