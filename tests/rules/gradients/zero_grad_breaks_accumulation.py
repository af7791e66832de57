import torch
from torch.nn import functional as F


def wiped(model, loader, accum_steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()  # expect: zero-grad-breaks-accumulation
        loss = F.mse_loss(model(x), y) / accum_steps
        loss.backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()


def by_the_model(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y) / args.gradient_accumulation_steps
        model.zero_grad()  # expect: zero-grad-breaks-accumulation
        loss.backward()
        is_boundary = (step + 1) % args.gradient_accumulation_steps == 0
        if is_boundary:
            optimizer.step()


def scaled(model, loader, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()  # expect: zero-grad-breaks-accumulation
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y) / n
        scaler.scale(loss).backward()
        if (i + 1) % n == 0 or i + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()


def right(model, loader, k):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (F.mse_loss(model(x), y) / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def at_the_start_of_each_window(model, loader, k):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        if i % k == 0:
            optimizer.zero_grad()
        (F.mse_loss(model(x), y) / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()


def accelerated(model, loader, accelerator, k):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        with accelerator.accumulate(model):
            optimizer.zero_grad()
            accelerator.backward(F.mse_loss(model(x), y))
            if (i + 1) % k == 0:
                optimizer.step()


def guarded(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()


def critic_first(generator, critic, loader, n_critic):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_c = torch.optim.Adam(critic.parameters())
    for i, real in enumerate(loader):
        optimizer_c.zero_grad()
        fake = generator(torch.randn(4, 8))
        (critic(fake.detach()).mean() - critic(real).mean()).backward()
        optimizer_c.step()
        optimizer_g.zero_grad()
        if i % n_critic == 0:
            (-critic(generator(torch.randn(4, 8))).mean()).backward()
            optimizer_g.step()


def clears_the_other(generator, critic, loader, accum):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_c = torch.optim.Adam(critic.parameters())
    for i, real in enumerate(loader):
        optimizer_g.zero_grad()
        fake = generator(torch.randn(4, 8)).detach()
        loss = (critic(fake).mean() - critic(real).mean()) / accum
        loss.backward()
        if (i + 1) % accum == 0 or i + 1 == len(loader):
            optimizer_c.step()
            optimizer_c.zero_grad()
    return optimizer_g


def micro_batches_cleared(model, optimizer, criterion, get_batch, steps, accumulation_steps):
    for step in range(steps):
        for micro_step in range(accumulation_steps):
            optimizer.zero_grad()  # expect: zero-grad-breaks-accumulation
            x, y = get_batch("train")
            (criterion(model(x), y) / accumulation_steps).backward()
        optimizer.step()


def micro_batches_added_up(model, optimizer, criterion, get_batch, steps, accumulation_steps):
    for step in range(steps):
        optimizer.zero_grad()
        for micro_step in range(accumulation_steps):
            x, y = get_batch("train")
            (criterion(model(x), y) / accumulation_steps).backward()
        optimizer.step()
