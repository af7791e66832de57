"""A sharded optimizer is restored by a function of distributed checkpoints, not by a method."""

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)


def train(model, loader, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    step = 0
    if args.resume:
        shards = {
            "model": get_model_state_dict(model),
            "optimizer": get_optimizer_state_dict(model, optimizer),
        }
        dcp.load(shards, checkpoint_id=args.resume)
        set_model_state_dict(model, shards["model"])
        set_optimizer_state_dict(model, optimizer, shards["optimizer"])
        state = torch.load(f"{args.resume}/run.pt", map_location="cpu", weights_only=True)
        scheduler.load_state_dict(state["scheduler"])
        step = state["step"]
    for _ in range(step, args.steps):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            scheduler.step()
