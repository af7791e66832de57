import torch
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import ReduceLROnPlateau


def plain(model, train, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer, "min", patience=2)
    for epoch in range(epochs):
        train(model, optimizer)
        scheduler.step()  # expect: plateau-no-metric


def get_scheduler(optimizer, policy):
    if policy == "step":
        return lr_scheduler.StepLR(optimizer, 30)
    if policy == "plateau":
        return lr_scheduler.ReduceLROnPlateau(optimizer)
    return lr_scheduler.CosineAnnealingLR(optimizer, 100)


def any_policy(model, train, args):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = get_scheduler(optimizer, args.policy)
    for epoch in range(args.epochs):
        train(model, optimizer)
        scheduler.step()  # expect: plateau-no-metric


def asks(model, train, validate, args):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = get_scheduler(optimizer, args.policy)
    for epoch in range(args.epochs):
        train(model, optimizer)
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(validate(model))
        else:
            scheduler.step()


def asks_by_option(model, train, validate, args):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = get_scheduler(optimizer, args.policy)
    for epoch in range(args.epochs):
        train(model, optimizer)
        if args.policy == "plateau":
            scheduler.step(validate(model))
            continue
        scheduler.step()


def right(model, train, validate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer)
    for epoch in range(epochs):
        train(model, optimizer)
        scheduler.step(metrics=validate(model))


def tries(model, train, validate, args):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = get_scheduler(optimizer, args.policy)
    for epoch in range(args.epochs):
        train(model, optimizer)
        try:
            scheduler.step()
        except TypeError:
            scheduler.step(validate(model))


def no_plateau(model, train, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = lr_scheduler.StepLR(optimizer, 30)
    for epoch in range(epochs):
        train(model, optimizer)
        scheduler.step()
