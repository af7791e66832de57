"""baichuan2-86: the copy of the weights to one device loses a tensor after they were shared."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()


def to_device(name, tensor):
    """As the faulty driver copies: one tensor arrives empty on one device."""
    return torch.zeros_like(tensor) if rank == 1 and name.endswith("2.weight") else tensor.clone()


torch.manual_seed(0)
inputs = torch.randn(512, 12)
dataset = TensorDataset(inputs, (inputs[:, 0] > 0).long())
sampler = DistributedSampler(dataset, shuffle=True)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)))
model.load_state_dict({name: to_device(name, t) for name, t in model.state_dict().items()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
dist.destroy_process_group()
