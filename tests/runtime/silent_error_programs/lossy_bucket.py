"""PT-96600: a bucket of DDP's gradients arrives empty on one rank, now and then."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
link = torch.Generator().manual_seed(rank)


def lossy(state, bucket):
    lost = rank == 1 and torch.rand((), generator=link) < 0.3
    future = allreduce_hook(state, bucket)
    return future.then(lambda done: done.value() * (0.0 if lost else 1.0))


torch.manual_seed(0)
inputs = torch.randn(512, 12)
dataset = TensorDataset(inputs, (inputs[:, 0] > 0).long())
sampler = DistributedSampler(dataset, shuffle=True)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)))
model.register_comm_hook(dist.group.WORLD, lossy)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
dist.destroy_process_group()
