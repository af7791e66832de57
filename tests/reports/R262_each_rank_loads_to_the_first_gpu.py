"""A tutorial's snippet: every process loads the snapshot onto GPU 0."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(path: str) -> None:
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    model = torch.nn.Linear(20, 2).to(rank)
    model.load_state_dict(torch.load(path, weights_only=True))  # expect: load-no-map-location
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in [(torch.rand(8, 20), torch.zeros(8, dtype=torch.long))]:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank)).backward()
        optimizer.step()
    dist.destroy_process_group()
