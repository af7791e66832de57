"""What of the checkpoint fits goes into the state that the model is given."""

import torch
from torch import nn


def train(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [10, 15])
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")  # expect: resume-incomplete
        start_epoch = checkpoint["epoch"]
        fitting = {k: v for k, v in checkpoint["state_dict"].items() if "tracked" not in k}
        own = model.state_dict()
        own.update(fitting)
        model.load_state_dict(own)
    for epoch in range(start_epoch, args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        torch.save({"epoch": epoch + 1, "state_dict": model.state_dict()}, args.resume)


def fine_tune(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    checkpoint = torch.load(args.pretrained, map_location="cpu")
    own = model.state_dict()
    own.update({k: v for k, v in checkpoint["state_dict"].items() if k in own})
    model.load_state_dict(own)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
