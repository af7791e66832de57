"""One of several resumes in a file is enough to tell; each function here has parts of its own."""

import torch
from torch import nn


def train(model, loader, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")  # expect: resume-incomplete
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        start_epoch = checkpoint["epoch"] + 1
    for epoch in range(start_epoch, args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pt")


def resume_beside_an_average(args, model, loader, average):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")  # expect: resume-incomplete
        model.load_state_dict(checkpoint["model"])
        average.load_state_dict(checkpoint["average"])
        start_epoch = checkpoint["epoch"] + 1
    for epoch in range(start_epoch, args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        state = {"model": model.state_dict(), "average": average.state_dict(), "epoch": epoch}
        torch.save({**state, "optimizer": optimizer.state_dict()}, "last.pt")


def go_on_while(model, loader, path, total):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    if path is not None:
        state = torch.load(path, map_location="cpu")  # expect: resume-incomplete
        model.load_state_dict(state["model"])
        step = state["step"]
    while step < total:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, "last.pt")


# What is right.


def report_while_it_lasts(model, path, images):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    step = checkpoint["step"]
    print("from step", step)
    return model(images)


def start_from_other_weights(model, path):
    weights = torch.load(path, map_location="cpu")
    model.load_state_dict(weights["model"], strict=False)


def infer(model, path, images):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    print("from epoch", checkpoint["epoch"])
    return model(images)


def weights_alone_or_in_a_dict(args, model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    if args.resume:
        saved = torch.load(args.resume, map_location="cpu")  # expect: resume-incomplete
        if isinstance(saved, dict) and "model" in saved:
            saved = saved["model"]
        model.load_state_dict(saved)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    torch.save({"model": model.state_dict()}, args.resume)
