"""The training loop is in another file; that a schedule is restored shows that it goes on."""

import torch
from engine import save, train_one_epoch


def main(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=args.steps)
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")  # expect: resume-incomplete
        model.load_state_dict(checkpoint["model"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        args.start_epoch = checkpoint["epoch"] + 1
    for epoch in range(args.start_epoch, args.epochs):
        train_one_epoch(model, optimizer, loader, epoch)
        scheduler.step()
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        save(checkpoint, "last.pt")


def main_with_all(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")
        restore_all(checkpoint, model, optimizer)
    train_one_epoch(model, optimizer, loader, 0)
