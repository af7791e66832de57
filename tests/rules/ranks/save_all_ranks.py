"""Who writes the checkpoint when several processes train."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def one_epoch(model, loader):
    for x in loader:
        model(x).sum().backward()


def all_write(rank, loader):
    model = DDP(nn.Linear(4, 2).to(rank), device_ids=[rank])
    for epoch in range(5):
        one_epoch(model, loader)
        torch.save(model.module.state_dict(), f"epoch{epoch}.pt")  # expect: save-all-ranks


def write(model, path):
    torch.save(model.state_dict(), path)  # expect: save-all-ranks


def all_write_through_a_helper(args, loader):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.distributed:
        model = DDP(model)
    one_epoch(model, loader)
    optimizer.step()
    write(model, args.output)


# What is right.


def first_writes(rank, loader):
    model = DDP(nn.Linear(4, 2).to(rank), device_ids=[rank])
    for epoch in range(5):
        one_epoch(model, loader)
        if rank == 0:
            torch.save(model.module.state_dict(), f"epoch{epoch}.pt")
        dist.barrier()


def save(model, path):
    torch.save(model.state_dict(), path)


def helper_is_guarded(args, loader):
    model = DDP(nn.Linear(4, 2))
    is_main = dist.get_rank() == 0
    one_epoch(model, loader)
    if is_main:
        save(model, args.output)


def others_leave(args, loader):
    model = DDP(nn.Linear(4, 2))
    one_epoch(model, loader)
    if dist.get_rank() != 0:
        return
    torch.save(model.module.state_dict(), args.output)


def save_on_master(state, path):
    if int(os.environ["RANK"]) == 0:
        torch.save(state, path)


def guard_in_the_helper(args, loader):
    model = DDP(nn.Linear(4, 2))
    one_epoch(model, loader)
    save_on_master(model.module.state_dict(), args.output)


def a_file_for_each(rank, loader, memory):
    model = DDP(nn.Linear(4, 2).to(rank))
    one_epoch(model, loader)
    torch.save(memory, f"memory{rank}.pt")


def a_file_for_each_by_name(args, loader, memory):
    path = f"memory{args.rank}.pt"
    model = DDP(nn.Linear(4, 2).to(args.gpu))
    one_epoch(model, loader)
    torch.save(memory, path)
    if args.gpu == 0:
        torch.save(model.state_dict(), "last.pt")


def on_one_process(loader, path):
    model = nn.Linear(4, 2)
    one_epoch(model, loader)
    torch.save(model.state_dict(), path)
