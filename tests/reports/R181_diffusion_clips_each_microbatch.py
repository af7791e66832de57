import torch
import torch.nn.functional as F
from accelerate import Accelerator


def main(unet, noise_scheduler, train_dataloader, args):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulation)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    unet, optimizer, train_dataloader = accelerator.prepare(unet, optimizer, train_dataloader)
    for epoch in range(args.epochs):
        unet.train()
        for images in train_dataloader:
            with accelerator.accumulate(unet):
                noise = torch.randn_like(images)
                steps = torch.randint(0, 1000, (len(images),))
                predicted = unet(noise_scheduler.add_noise(images, noise, steps), steps)
                accelerator.backward(F.mse_loss(predicted, noise))
                accelerator.clip_grad_norm_(unet.parameters(), 1.0)  # expect: clip-per-microbatch
                optimizer.step()
                optimizer.zero_grad()
