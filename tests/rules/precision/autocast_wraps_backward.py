import torch
from torch.cuda.amp import GradScaler, autocast


def inside(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with autocast():
            loss = criterion(model(x), y)
            scaler.scale(loss).backward()  # expect: autocast-wraps-backward
            scaler.step(optimizer)
            scaler.update()


def whole_loop(model, optimizer, criterion, loader):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()  # expect: autocast-wraps-backward
            optimizer.step()


def outside(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def penalty(critic, optimizer, real, fake):
    with autocast():
        scores = critic(real)
        (slopes,) = torch.autograd.grad(scores.sum(), real, create_graph=True)
        loss = scores.mean() + (slopes.norm(2) - 1) ** 2
    loss.backward()
    optimizer.step()


def switched_off(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast(enabled=False):
            criterion(model(x), y).backward()
        optimizer.step()


def through_accelerate(accelerator, model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        with accelerator.autocast():
            loss = criterion(model(x), y)
            accelerator.backward(loss)  # expect: autocast-wraps-backward
        optimizer.step()
        with accelerator.autocast():
            loss = criterion(model(x), y)
        accelerator.backward(loss)
