"""Loaders on one device and on several: who decides on the order of the samples."""

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    WeightedRandomSampler,
)

# What must be flagged.


def pretraining_loader(dataset, workers: int):
    return torch.utils.data.DataLoader(
        dataset,
        batch_size=256,
        sampler=torch.utils.data.distributed.DistributedSampler(dataset),
        shuffle=True,  # expect: sampler-with-shuffle
        num_workers=workers,
    )


def balanced_loader(dataset, weights):
    sampler = WeightedRandomSampler(weights, num_samples=len(weights))
    return DataLoader(dataset, 32, True, sampler)  # expect: sampler-with-shuffle


def only_when_distributed(dataset, args):
    sampler = None
    if args.distributed:
        sampler = DistributedSampler(dataset)
    loader = DataLoader(
        dataset,
        args.batch_size,
        shuffle=True,  # expect: sampler-with-shuffle
        sampler=sampler,
    )
    return loader, sampler


class EveryThird(Sampler):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(range(0, self.size, 3))


def thinned(dataset):
    return DataLoader(
        dataset,
        sampler=EveryThird(len(dataset)),
        shuffle=True,  # expect: sampler-with-shuffle
    )


def batched_by_hand(dataset):
    batches = BatchSampler(RandomSampler(dataset), batch_size=8, drop_last=False)
    return DataLoader(dataset, batch_sampler=batches, shuffle=True)  # expect: sampler-with-shuffle


def through_options(dataset):
    options = {"batch_size": 32, "shuffle": True, "num_workers": 2}
    return DataLoader(  # expect: sampler-with-shuffle
        dataset, sampler=RandomSampler(dataset), **options
    )


# What must not.


def decided_by_the_sampler(dataset, distributed: bool):
    sampler = DistributedSampler(dataset) if distributed else None
    return DataLoader(dataset, 64, shuffle=(sampler is None), sampler=sampler)


def decided_together(dataset, distributed: bool):
    if distributed:
        sampler, shuffle = DistributedSampler(dataset), False
    else:
        sampler, shuffle = None, True
    return DataLoader(dataset, 64, shuffle=shuffle, sampler=sampler)


def no_sampler(dataset):
    return DataLoader(dataset, 64, shuffle=True, sampler=None)


def given_from_outside(dataset, sampler=None, shuffle=True):
    return DataLoader(dataset, 64, shuffle=shuffle, sampler=sampler)


def shuffle_off(dataset):
    return DataLoader(dataset, sampler=SequentialSampler(dataset), shuffle=False)


def the_sampler_shuffles(dataset):
    sampler = DistributedSampler(dataset, shuffle=True)
    return DataLoader(dataset, 64, sampler=sampler)


def chosen_in_branches(dataset, distributed: bool):
    if distributed:
        return DataLoader(dataset, 64, sampler=DistributedSampler(dataset))
    return DataLoader(dataset, 64, shuffle=True)
