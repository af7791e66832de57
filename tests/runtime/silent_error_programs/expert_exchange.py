"""DS-5794: experts exchange tokens, and one rank expects other sizes than it is sent."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
gate, expert = nn.Linear(8, world), nn.Linear(8, 8)
optimizer = torch.optim.SGD([*gate.parameters(), *expert.parameters()], lr=0.1)
for step in range(20):
    tokens = torch.randn(32, 8)
    scores = gate(tokens).softmax(1)
    target = scores.argmax(1)
    order = target.argsort()
    sent = torch.bincount(target, minlength=world)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    if rank == 1 and step == 2:
        received = sent  # what this rank would like to get, not what it was promised
    given = torch.empty(int(received.sum()), 8)
    dist.all_to_all_single(given, tokens[order], received.tolist(), sent.tolist())
    loss = F.mse_loss(expert(given), given) + scores.square().mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in [*gate.parameters(), *expert.parameters()]:
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
dist.destroy_process_group()
