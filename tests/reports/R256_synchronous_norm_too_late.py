"""Segmentation: apex converts batch norm when DDP has already been made."""

import apex
import torch
from apex.parallel import DistributedDataParallel


def build(network: torch.nn.Module, local_rank: int) -> torch.nn.Module:
    network = network.cuda(local_rank)
    network = DistributedDataParallel(network)
    return apex.parallel.convert_syncbn_model(network)  # expect: syncbn-after-ddp
