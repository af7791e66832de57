"""Speech recognition on several cards: the micro-batch before the step is not synchronised."""

from contextlib import nullcontext


def train_epoch(model, loader, optimizer, accum_grad):
    for batch_idx, (speech, text) in enumerate(loader):
        context = model.no_sync if batch_idx % accum_grad else nullcontext  # expect: accum-no-sync
        with context():
            loss = model(speech, text) / accum_grad
            loss.backward()
        if (batch_idx + 1) % accum_grad == 0 or batch_idx + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
