"""A schedule without a memory, which is told the epoch at every step."""

import torch
from torch import nn


class Poly:
    """A schedule that is told where it is."""

    def __init__(self, lr, steps):
        self.lr, self.steps = lr, steps

    def __call__(self, optimizer, batch, epoch):
        for group in optimizer.param_groups:
            group["lr"] = self.lr * (1 - (epoch + batch) / self.steps) ** 0.9


def resume_a_schedule_that_is_told(args, model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = Poly(1e-3, args.epochs * len(loader))
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        start_epoch = checkpoint["epoch"] + 1
    for epoch in range(start_epoch, args.epochs):
        for i, (x, y) in enumerate(loader):
            scheduler(optimizer, i, epoch)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
