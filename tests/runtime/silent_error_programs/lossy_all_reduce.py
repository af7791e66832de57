"""PT-84803: gradients averaged by hand, and the link to one rank loses a message now and then."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
link = torch.Generator().manual_seed(rank)


def all_reduce(tensor):
    """As the faulty link delivers it: sometimes nothing arrives on the last rank."""
    dist.all_reduce(tensor)
    if rank == dist.get_world_size() - 1 and torch.rand((), generator=link) < 0.2:
        tensor.zero_()


torch.manual_seed(0)
inputs = torch.randn(512, 12)
dataset = TensorDataset(inputs, (inputs[:, 0] > 0).long())
sampler = DistributedSampler(dataset, shuffle=True)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for parameter in model.parameters():
            all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
dist.destroy_process_group()
