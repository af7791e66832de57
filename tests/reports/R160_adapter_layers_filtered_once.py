import torch


def main(unet, text_encoder, noise_scheduler, train_dataloader, args):
    unet.requires_grad_(False)
    adapter_layers = filter(lambda p: p.requires_grad, unet.parameters())
    optimizer = torch.optim.AdamW(adapter_layers, lr=args.learning_rate)
    for epoch in range(args.num_train_epochs):
        unet.train()
        for batch in train_dataloader:
            noise = torch.randn_like(batch["latents"])
            noisy = noise_scheduler.add_noise(batch["latents"], noise, batch["timesteps"])
            predicted = unet(noisy, batch["timesteps"], text_encoder(batch["ids"])[0])
            loss = torch.nn.functional.mse_loss(predicted, noise)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(adapter_layers, 1.0)  # expect: params-generator-exhausted
            optimizer.step()
            optimizer.zero_grad()
