"""Text classification: what is left after the last full window is never stepped."""


def train_epoch(model, data_loader, optimizer, accumulation_steps):
    model.train()
    optimizer.zero_grad()
    for step, batch in enumerate(data_loader):
        loss = model(**batch).loss / accumulation_steps
        loss.backward()
        if (step + 1) % accumulation_steps == 0:  # expect: accum-tail-dropped
            optimizer.step()
            optimizer.zero_grad()
