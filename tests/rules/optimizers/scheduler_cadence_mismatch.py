import math

import torch
import transformers
from accelerate import Accelerator
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    MultiStepLR,
    OneCycleLR,
    StepLR,
)


def train_epoch(model, optimizer, criterion, loader, scheduler=None):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def cosine_per_batch(model, criterion, train_loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step()  # expect: scheduler-cadence-mismatch


def step_per_batch(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    milestones = MultiStepLR(optimizer, [60, 80])
    for epoch in range(epochs):
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step()  # expect: scheduler-cadence-mismatch
            milestones.step()  # expect: scheduler-cadence-mismatch


def exponential_per_batch(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step()  # expect: scheduler-cadence-mismatch


def cycle_per_epoch(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = OneCycleLR(optimizer, 0.1, steps_per_epoch=len(train_loader), epochs=epochs)
    for epoch in range(epochs):
        train_epoch(model, optimizer, criterion, train_loader)
        scheduler.step()  # expect: scheduler-cadence-mismatch


def warmup_per_epoch(model, criterion, train_dataloader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    total = len(train_dataloader) * epochs
    scheduler = transformers.get_linear_schedule_with_warmup(optimizer, 0, total)
    for epoch in range(epochs):
        for x, y in train_dataloader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        scheduler.step()  # expect: scheduler-cadence-mismatch


def right_per_batch(model, criterion, train_loader, epochs, accumulation):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))
    cycle = OneCycleLR(optimizer, 0.1, epochs * math.ceil(len(train_loader) / accumulation))
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step()
            cycle.step()


def right_per_epoch(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, epochs)
    steps = StepLR(optimizer, 30)
    for epoch in range(epochs):
        train_epoch(model, optimizer, criterion, train_loader)
        scheduler.step()
        steps.step()


def right_through_helper(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = OneCycleLR(optimizer, 0.1, total_steps=epochs * len(train_loader))
    for epoch in range(epochs):
        train_epoch(model, optimizer, criterion, train_loader, scheduler)


def fractional(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingWarmRestarts(optimizer, 10)
    for epoch in range(epochs):
        for i, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step(epoch + i / len(train_loader))


def any_unit(model, criterion, train_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    noam = LambdaLR(optimizer, lambda step: min((step + 1) ** -0.5, step / 4000))
    slow = ExponentialLR(optimizer, gamma=0.9999)
    small = StepLR(optimizer, step_size=100, gamma=0.99)
    large = StepLR(optimizer, step_size=10_000)
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            noam.step()
            slow.step()
            small.step()
            large.step()


def epochs_are_iterations(model, criterion, sample, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        x, y = sample()
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        scheduler.step()


def epochs_from_batches(model, criterion, train_loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    epochs = args.total_steps // len(train_loader)
    scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        train_epoch(model, optimizer, criterion, train_loader)
        scheduler.step()


def loader_under_a_short_name(model, criterion, train_set, val_set, epochs):
    tl = torch.utils.data.DataLoader(train_set, batch_size=64, shuffle=True)
    classes = sorted({y for _, y in val_set})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=len(tl))
    by_class = CosineAnnealingLR(optimizer, T_max=len(classes))
    for epoch in range(epochs):
        for x, y in tl:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        scheduler.step()  # expect: scheduler-cadence-mismatch
        by_class.step()


def accelerated(model, criterion, train_loader, epochs, accumulation):
    accelerator = Accelerator(gradient_accumulation_steps=accumulation)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = len(train_loader) * epochs
    scheduler = transformers.get_cosine_schedule_with_warmup(optimizer, 500, total)
    model, optimizer, train_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, scheduler
    )
    for epoch in range(epochs):
        for x, y in train_loader:
            with accelerator.accumulate(model):
                accelerator.backward(criterion(model(x), y))
                optimizer.step()
                scheduler.step()  # expect: scheduler-cadence-mismatch
                optimizer.zero_grad()


def accelerated_and_divided(model, criterion, train_loader, epochs, accumulation):
    accelerator = Accelerator(gradient_accumulation_steps=accumulation)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    laps = math.ceil(len(train_loader) / accumulation)
    scheduler = transformers.get_cosine_schedule_with_warmup(optimizer, 500, laps * epochs)
    model, optimizer, train_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, scheduler
    )
    for epoch in range(epochs):
        for x, y in train_loader:
            with accelerator.accumulate(model):
                accelerator.backward(criterion(model(x), y))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()


def not_handed_to_accelerate(model, criterion, train_loader, epochs):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = CosineAnnealingLR(optimizer, T_max=len(train_loader) * epochs)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    for epoch in range(epochs):
        for x, y in train_loader:
            with accelerator.accumulate(model):
                accelerator.backward(criterion(model(x), y))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()


def accumulated(model, criterion, train_loader, epochs, accumulation):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = OneCycleLR(optimizer, 1e-3, total_steps=epochs * len(train_loader))
    for epoch in range(epochs):
        for i, (x, y) in enumerate(train_loader):
            (criterion(model(x), y) / accumulation).backward()
            if (i + 1) % accumulation == 0:
                optimizer.step()
                scheduler.step()  # expect: scheduler-cadence-mismatch
                optimizer.zero_grad()


def accumulated_and_divided(model, criterion, train_loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    laps = len(train_loader)
    laps //= 4
    halves = CosineAnnealingLR(optimizer, T_max=epochs * laps)
    scheduler = OneCycleLR(optimizer, 1e-3, total_steps=epochs * (len(train_loader) // 4))
    for epoch in range(epochs):
        for i, (x, y) in enumerate(train_loader):
            (criterion(model(x), y) / 4).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                halves.step()
                scheduler.step()
                optimizer.zero_grad()
