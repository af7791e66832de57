"""Models that are moved before and after they are wrapped."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def there_and_back(model, rank, evaluate):
    ddp = DDP(model.to(rank), device_ids=[rank])
    ddp.to("cpu")  # expect: ddp-move-after-wrap
    evaluate(ddp)
    ddp.cuda()  # expect: ddp-move-after-wrap
    return ddp


def chained(model):
    return DDP(model).cuda()  # expect: ddp-move-after-wrap


def cast(model, rank):
    model = model.to(rank)
    model = DDP(model, device_ids=[rank])
    model.half()  # expect: ddp-move-after-wrap
    return model


def new_head(model, rank, classes: int):
    model = DDP(model.to(rank), device_ids=[rank])
    model.module.fc = nn.Linear(512, classes).to(rank)  # expect: ddp-move-after-wrap
    model.module.head = nn.Linear(512, classes)  # expect: ddp-move-after-wrap
    return model


# What is right.


def moved_first(model, rank):
    model = model.to(rank)
    return DDP(model, device_ids=[rank])


def said_twice(model, device):
    model.to(device)
    model = DDP(model)
    model.to(device)
    return model


def for_one_or_many(args, model, device):
    if args.distributed:
        model = DDP(model.cuda(), device_ids=[args.gpu])
    else:
        model = nn.DataParallel(model)
        model.to(device)
    return model


def last_of_all(model, rank, loader, path):
    model = DDP(model.to(rank), device_ids=[rank])
    for x in loader:
        model(x.to(rank)).sum().backward()
    torch.save(model.module.cpu().state_dict(), path)


def the_next_model(models, rank):
    for model in models:
        wrapped = DDP(model.to(rank), device_ids=[rank])
        wrapped(torch.rand(1).to(rank))
