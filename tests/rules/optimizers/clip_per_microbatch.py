import torch
from accelerate import Accelerator
from torch.nn.utils import clip_grad_norm_


def accumulated(model, optimizer, criterion, loader, steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / steps).backward()
        norm = clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-per-microbatch
        if (i + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(norm)


def scaled(model, optimizer, criterion, loader, scaler, args):
    for i, (x, y) in enumerate(loader):
        scaler.scale(criterion(model(x), y) / args.steps).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), args.clip)  # expect: clip-per-microbatch
        if (i + 1) % args.steps == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def accelerated(model, criterion, loader, args):
    accelerator = Accelerator(gradient_accumulation_steps=args.steps)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-per-microbatch
            optimizer.step()
            optimizer.zero_grad()


def right(model, optimizer, criterion, loader, steps):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / steps).backward()
        if (i + 1) % steps == 0:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def guarded(accelerator, model, optimizer, criterion, loader):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def no_accumulation(model, criterion, loader):
    accelerator = Accelerator(mixed_precision="fp16")
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def every_batch(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        norm = clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            optimizer.step()


def inner_loop(model, optimizer, criterion, loader, steps):
    batches = iter(loader)
    for step in range(1000):
        for _ in range(steps):
            x, y = next(batches)
            (criterion(model(x), y) / steps).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def private(model, optimizer, criterion, batches):
    for batch in batches:
        summed = [torch.zeros_like(p) for p in model.parameters()]
        for x, y in batch:
            model.zero_grad()
            criterion(model(x), y).backward()
            clip_grad_norm_(model.parameters(), 1.0)
            for total, p in zip(summed, model.parameters()):
                total.add_(p.grad)
        for total, p in zip(summed, model.parameters()):
            p.grad = total / len(batch)
        optimizer.step()


def two_networks(generator, critic, opt_g, opt_c, loader):
    for i, x in enumerate(loader):
        opt_c.zero_grad()
        critic(x).mean().backward()
        clip_grad_norm_(critic.parameters(), 1.0)
        opt_c.step()
        if i % 5 == 0:
            opt_g.zero_grad()
            critic(generator(x)).mean().backward()
            clip_grad_norm_(generator.parameters(), 1.0)
            opt_g.step()


def accelerated_with_errors_collected(model, criterion, loader):
    """An error after the clip ends the training elsewhere: it is no lap without a step."""
    accelerator = Accelerator(gradient_accumulation_steps=4)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        errors = []
        with accelerator.accumulate(model):
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            try:
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    if not torch.isfinite(norm):
                        raise RuntimeError("the gradients are not finite")
                optimizer.step()
                optimizer.zero_grad()
            except RuntimeError as error:
                errors.append(error)
        report(errors)


def some_of_the_optimizers(model, optimizers, criterion, loader, steps):
    """The clip waits for the last micro-batch, whichever optimizers step then."""
    for i, (x, y) in enumerate(loader):
        if i % steps == 0:
            for name, optimizer in optimizers.items():
                if name != "critic":
                    optimizer.zero_grad()
        (criterion(model(x), y) / steps).backward()
        if (i + 1) % steps == 0 or i + 1 == len(loader):
            clip_grad_norm_(model.parameters(), 1.0)
            for name, optimizer in optimizers.items():
                if name != "critic":
                    optimizer.step()


def accumulated_if_asked(model, optimizer, criterion, loader, scaler, config):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if config.accumulation_steps > 1:
            scaler.scale(loss / config.accumulation_steps).backward()
            if config.clip:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-per-microbatch
            if (i + 1) % config.accumulation_steps == 0:
                scaler.step(optimizer)
                optimizer.zero_grad()
                scaler.update()
        else:
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
