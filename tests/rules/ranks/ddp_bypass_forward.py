"""Training through the wrapper, and around it."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def encode(self, x):
        return self.encoder(x)

    def forward(self, x):
        return self.head(self.encode(x))


def around_by_module(rank, loader):
    model = DDP(Net().to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model.module(x), y).backward()  # expect: ddp-bypass-forward
        optimizer.step()


def around_by_a_method(rank, loader):
    model = DDP(Net().to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, _ in loader:
        optimizer.zero_grad()
        z = model.module.encode(x)  # expect: ddp-bypass-forward
        z.pow(2).mean().backward()
        optimizer.step()


def around_by_the_old_name(model: nn.Module, rank, loader, optimizer):
    ddp_model = DDP(model, device_ids=[rank])
    ddp_model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)  # expect: ddp-bypass-forward
        loss.backward()
        optimizer.step()


# What is right.


def through_the_wrapper(rank, loader, val_loader, path):
    model = DDP(Net().to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(sum(model.module(x).argmax(1).eq(y).sum().item() for x, y in val_loader))
    torch.save(model.module.state_dict(), path)


def one_process_or_many(args, loader):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    raw = model
    if args.distributed:
        model = DDP(model, device_ids=[args.rank])
    model = torch.compile(model)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return raw


def fixed_teacher(teacher: nn.Module, student: nn.Module, rank, loader, optimizer):
    student, teacher = DDP(student, device_ids=[rank]), DDP(teacher, device_ids=[rank])
    for x, _ in loader:
        with torch.no_grad():
            wanted = teacher.module(x)
        optimizer.zero_grad()
        F.mse_loss(student(x), wanted).backward()
        optimizer.step()


def other_part_through_a_method(rank, loader):
    model = DDP(Net().to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        (F.cross_entropy(model(x), y) + model.module.encode(x).pow(2).mean()).backward()
        optimizer.step()


def average_in_a_wrapper_of_its_own(rank, loader):
    model = Net().to(rank)
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = DDP(model, device_ids=[rank])
    average = DDP(average, device_ids=[rank])
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return average


def wrapped_on_one_path(args, loader, optimizer):
    model = Net()
    if args.distributed:
        model = DDP(model, device_ids=[args.rank])
    elif args.gpus > 1:
        model = nn.DataParallel(model)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def in_one_branch_only(model, loader, criterion, optimizer, is_masked):
    model = nn.parallel.DistributedDataParallel(model)
    for x, y in loader:
        optimizer.zero_grad()
        if is_masked:
            loss = criterion(model.module(x, y), y)  # expect: ddp-bypass-forward
        else:
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def one_epoch_of_views(loader, model, criterion, optimizer):
    for one, other in loader:
        optimizer.zero_grad()
        first, second = model(one), model(other)
        loss = criterion(first, second)
        loss.backward()
        optimizer.step()


def main_of_one_or_many(gpu, args):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    if args.dataparallel:
        model = torch.nn.DataParallel(model)
    else:
        if args.nodes > 1:
            model = DDP(model, device_ids=[gpu])
    model = model.to(args.device)
    for _ in range(args.epochs):
        one_epoch_of_views(args.loader, model, torch.nn.functional.mse_loss, optimizer)


def start(parser):
    args = parser.parse_args()
    args.world_size = args.gpus * args.nodes
    if args.nodes > 1:
        torch.multiprocessing.spawn(main_of_one_or_many, args=(args,), nprocs=args.gpus)
    else:
        main_of_one_or_many(0, args)


def heat_maps(model, loader):
    model.eval()
    maps = []
    for x, y in loader:
        features = model.encode(x)
        features.retain_grad()
        score = model.head(features)[:, 1].sum()
        model.zero_grad()
        score.backward()
        maps.append(features.grad.clamp(min=0))
    return maps


def trained_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def heat_maps_after_each_epoch(rank, loader, epochs):
    inner = Net().to(rank)
    model = DDP(inner, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        trained_epoch(model, loader, optimizer)
        heat_maps(inner, loader)


def regularized(model, loader):
    for x, y in loader:
        penalty = model.encode(x).pow(2).mean()  # expect: ddp-bypass-forward
        penalty.backward()


def gradients_of_two(rank, loader, epochs):
    inner = Net().to(rank)
    model = DDP(inner, device_ids=[rank])
    other = Net().to(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    others = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(epochs):
        trained_epoch(model, loader, optimizer)
        regularized(inner, loader)
        others.zero_grad()
        optimizer.step()
