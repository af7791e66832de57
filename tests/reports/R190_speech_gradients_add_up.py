"""Speech recognition: `accum_grad_n_steps` micro-batches a step, each at full weight."""


def train_epoch(model, loader, optimizer, hparams):
    optimizer.zero_grad()
    for batch_index, (features, tokens) in enumerate(loader):
        loss = model(features, tokens)
        loss.backward()  # expect: accum-loss-not-scaled
        if (batch_index + 1) % hparams.accum_grad_n_steps == 0 or batch_index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
