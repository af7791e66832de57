"""Synchronous batch norm, made before and after the model is wrapped."""

import apex
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def too_late(model, rank):
    model = DDP(model.to(rank), device_ids=[rank])
    return nn.SyncBatchNorm.convert_sync_batchnorm(model)  # expect: syncbn-after-ddp


def the_inner_model(model, rank, sync_bn: bool):
    ddp = DDP(model, device_ids=[rank])
    if sync_bn:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # expect: syncbn-after-ddp
    return ddp, model


def with_apex(args, model):
    if args.distributed:
        model = apex.parallel.DistributedDataParallel(model)
    model = apex.parallel.convert_syncbn_model(model)  # expect: syncbn-after-ddp
    return model


# What is right.


def in_order(model, rank):
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).to(rank)
    return DDP(model, device_ids=[rank])


def in_another_branch(args, model):
    if args.plain:
        model = DDP(model)
    else:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = DDP(model)
    return model


def another_model(student, teacher, rank):
    student = DDP(student, device_ids=[rank])
    teacher = nn.SyncBatchNorm.convert_sync_batchnorm(teacher)
    return student, DDP(teacher, device_ids=[rank])
