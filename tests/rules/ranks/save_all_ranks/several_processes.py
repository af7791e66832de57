"""A process group of several: all of them write."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(loader, epochs, rank, world_size):
    dist.init_process_group(
        backend="nccl", init_method="tcp://localhost:32456", rank=rank, world_size=world_size
    )
    model = DistributedDataParallel(nn.Linear(4, 2).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch.save(model.module.state_dict(), f"epoch{epoch}.pth")  # expect: save-all-ranks
