"""Distributed samplers that repeat their order, and those that are told the epoch."""

import torch
import torch_xla.core.xla_model as xm
from torch_xla.distributed import parallel_loader
from torch import nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.distributed import DistributedSampler


def train_one_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


# What must be flagged.


def plain(dataset, model, optimizer, epochs: int):
    sampler = DistributedSampler(dataset)  # expect: sampler-set-epoch-missing
    loader = DataLoader(dataset, 32, sampler=sampler, num_workers=4)
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)


def make_loader(dataset, distributed: bool):
    if distributed:
        sampler = DistributedSampler(dataset, shuffle=True)  # expect: sampler-set-epoch-missing
    else:
        sampler = None
    return DataLoader(dataset, 32, shuffle=sampler is None, sampler=sampler)


def made_elsewhere(dataset, model, optimizer, epochs: int, distributed: bool):
    loader = make_loader(dataset, distributed)
    for epoch in range(epochs):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def forever(loader):
    while True:
        yield from loader


def infinite(dataset, model, optimizer, steps: int):
    sampler = DistributedSampler(dataset)  # expect: sampler-set-epoch-missing
    batches = forever(DataLoader(dataset, 32, sampler=sampler))
    for step in range(steps):
        x, y = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def again_and_again(loader):
    while True:
        for batch in loader:
            yield batch


def infinite_in_for(dataset, model, optimizer):
    sampler = DistributedSampler(dataset)  # expect: sampler-set-epoch-missing
    for x, y in again_and_again(DataLoader(dataset, 32, sampler=sampler)):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def only_the_wrong_one_is_told(train_set, val_set, model, optimizer, epochs: int):
    train_sampler = DistributedSampler(train_set)  # expect: sampler-set-epoch-missing
    val_sampler = DistributedSampler(val_set, shuffle=False)
    loader = DataLoader(train_set, 32, sampler=train_sampler)
    val_loader = DataLoader(val_set, 32, sampler=val_sampler)
    for epoch in range(epochs):
        val_sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer)
        with torch.no_grad():
            for x, y in val_loader:
                print(F.cross_entropy(model(x), y))


# What is right.


def told(dataset, model, optimizer, epochs: int):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 32, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer)


def told_through_the_loader(dataset, model, optimizer, epochs: int):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer)


def told_through_the_batch_sampler(dataset, model, optimizer, epochs: int):
    batches = BatchSampler(DistributedSampler(dataset), 32, drop_last=True)
    loader = DataLoader(dataset, batch_sampler=batches)
    for epoch in range(epochs):
        loader.batch_sampler.sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer)


def told_if_distributed(dataset, model, optimizer, epochs: int, distributed: bool):
    sampler = DistributedSampler(dataset) if distributed else None
    loader = DataLoader(dataset, 32, sampler=sampler, shuffle=sampler is None)
    for epoch in range(epochs):
        if distributed:
            sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer)


def told_if_it_can(dataset, model, optimizer, epochs: int):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    for epoch in range(epochs):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer)


class Data:
    def __init__(self, dataset) -> None:
        self.sampler = DistributedSampler(dataset)
        self.loader = DataLoader(dataset, 32, sampler=self.sampler)

    def start(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)


def told_by_a_class(dataset, model, optimizer, epochs: int):
    data = Data(dataset)
    for epoch in range(epochs):
        data.start(epoch)
        train_one_epoch(model, data.loader, optimizer)


def told_by_something_unknown(dataset, model, optimizer, epochs: int, hooks):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    for epoch in range(epochs):
        hooks.before_epoch(loader, epoch)
        train_one_epoch(model, loader, optimizer)


def in_order(dataset, model, optimizer, epochs: int):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset, shuffle=False))
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)


def for_evaluation(val_set, model, epochs: int):
    loader = DataLoader(val_set, 32, sampler=DistributedSampler(val_set))
    for epoch in range(epochs):
        with torch.no_grad():
            for x, y in loader:
                print(F.cross_entropy(model(x), y))


def one_epoch(dataset, model, optimizer):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def one_epoch_in_a_loop(dataset, model, optimizer):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    for epoch in range(1):
        train_one_epoch(model, loader, optimizer)


def new_sampler_for_each_fold(folds, optimizer):
    for dataset in folds:
        model = nn.Linear(10, 10)
        loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
        train_one_epoch(model, loader, optimizer)


def handed_to_a_trainer(dataset, trainer, model):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    trainer.fit(model, loader)


def importance_of_inputs(eval_set, model, thresholds):
    """Gradients are taken, but nothing is trained."""
    loader = DataLoader(eval_set, 32, sampler=DistributedSampler(eval_set))
    for threshold in thresholds:
        for x, y in loader:
            x.requires_grad_()
            F.cross_entropy(model(x), y).backward()
            print((x.grad.abs() > threshold).float().mean())


def told_through_a_dict(model, train_set, val_set):
    samplers = {"train": DistributedSampler(train_set), "val": DistributedSampler(val_set)}
    loader = DataLoader(train_set, batch_size=8, sampler=samplers["train"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        for sampler in samplers.values():
            sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def on_tpu_cores(model, criterion, dataset, epochs: int):
    sampler = DistributedSampler(dataset, shuffle=True)  # expect: sampler-set-epoch-missing
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        on_device = parallel_loader.ParallelLoader(loader, [xm.xla_device()])
        for x, y in on_device.per_device_loader(xm.xla_device()):
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            xm.optimizer_step(optimizer)


def on_tpu_cores_told(model, criterion, dataset, epochs: int):
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = parallel_loader.MpDeviceLoader(
        DataLoader(dataset, batch_size=16, sampler=sampler), xm.xla_device()
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            xm.optimizer_step(optimizer)
