"""Loaders that training walks: who shuffles, who does not, and who must not."""

import random

import torch
import torchvision
from datasets import load_dataset
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


def step(model, x, y, optimizer):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


# What must be flagged.


def by_name(train_set, val_set):
    train_loader = DataLoader(  # expect: train-loader-no-shuffle
        train_set, batch_size=64, num_workers=4
    )
    val_loader = DataLoader(val_set, batch_size=64, num_workers=4)
    return train_loader, val_loader


def by_use(model, optimizer, folder, transform, epochs: int):
    dataset = torchvision.datasets.ImageFolder(folder, transform=transform)
    loader = torch.utils.data.DataLoader(dataset, 32)  # expect: train-loader-no-shuffle
    for _ in range(epochs):
        for x, y in loader:
            step(model, x, y, optimizer)


def only_on_the_gpu(transform, use_cuda: bool):
    options = {"batch_size": 64}
    if use_cuda:
        options.update({"num_workers": 1, "shuffle": True})
    train_set = torchvision.datasets.MNIST("data", train=True, transform=transform)
    train_loader = DataLoader(train_set, **options)  # expect: train-loader-no-shuffle
    return {"train_loader": train_loader}


def make_loader(dataset, batch_size: int = 32, shuffle: bool = False):
    return DataLoader(dataset, batch_size=batch_size, shuffle=shuffle)


def by_default(train_set, test_set):
    train_loader = make_loader(train_set)  # expect: train-loader-no-shuffle
    test_loader = make_loader(test_set)
    return train_loader, test_loader


def with_workers_on_the_gpu(train_set, use_cuda: bool):
    options = {"num_workers": 2, "pin_memory": True} if use_cuda else {}
    train_iter = DataLoader(train_set, batch_size=64, **options)  # expect: train-loader-no-shuffle
    return {"train_iter": train_iter}


def mixup(x, y):
    return x.lerp(x[torch.randperm(len(x))], 0.5), y


# What must not.


def shuffled(train_set, test_set):
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=64)
    fast_train_loader = make_loader(train_set, shuffle=True)
    return train_loader, test_loader, fast_train_loader


def in_so_many_words(train_set):
    train_loader = DataLoader(train_set, batch_size=64, shuffle=False)
    other_train_loader = make_loader(train_set, 64, False)
    return train_loader, other_train_loader


def with_an_order_given(train_set, sampler, batches):
    train_loader = DataLoader(train_set, batch_size=64, sampler=sampler)
    other_train_loader = DataLoader(train_set, batch_sampler=batches)
    return train_loader, other_train_loader


def depends(train_set, sampler=None):
    train_loader = DataLoader(train_set, 64, shuffle=sampler is None, sampler=sampler)
    return {"train_loader": train_loader}


class Lines(IterableDataset):
    def __iter__(self):
        yield from range(10)


def of_a_stream():
    train_loader = DataLoader(Lines(), batch_size=64)
    return {"train_loader": train_loader}


class TimeSeriesDataset(Dataset):
    def __getitem__(self, index):
        return index


def in_order_of_time():
    train_loader = DataLoader(TimeSeriesDataset(), batch_size=64)
    return {"train_loader": train_loader}


@torch.no_grad()
def mean_features(encoder, train_set):
    train_loader = DataLoader(train_set, batch_size=256)
    features = [encoder(x) for x, _ in train_loader]
    for x, _ in train_loader:
        features.append(encoder(x))
    return torch.cat(features).mean(0)


def in_one_batch(x, y):
    train_set = TensorDataset(x, y)
    train_loader = DataLoader(train_set, batch_size=len(train_set))
    return {"train_loader": train_loader}


def options_unseen(train_set, **options):
    train_loader = DataLoader(train_set, **options)
    return {"train_loader": train_loader}


def training_scores(train_set):
    train_eval_loader = DataLoader(train_set, batch_size=256)
    return {"train_eval_loader": train_eval_loader}


def in_an_order_drawn_before(folder, transform):
    dataset = torchvision.datasets.ImageFolder(folder, transform)
    order = torch.randperm(len(dataset)).tolist()
    train_loader = DataLoader(torch.utils.data.Subset(dataset, order[:1000]), 64)
    return {"train_loader": train_loader}


class PairsOfOneClass(Dataset):
    def __init__(self, by_class):
        self.by_class = by_class

    def __len__(self):
        return 1000

    def __getitem__(self, _):
        return random.sample(random.choice(self.by_class), 2)


class Augmented(Dataset):
    def __init__(self, images):
        self.images = images

    def __getitem__(self, index):
        return self.images[index] * random.uniform(0.9, 1.1)


def pairs(by_class, images):
    train_pairs_loader = DataLoader(PairsOfOneClass(by_class), batch_size=64)
    train_loader = DataLoader(Augmented(images), batch_size=64)  # expect: train-loader-no-shuffle
    return {"train_pairs_loader": train_pairs_loader, "train_loader": train_loader}


class Benchmark:
    def __init__(self, dataset):
        self.dataset = dataset

    def evaluate(self, detector):
        loader = DataLoader(self.dataset, batch_size=64)
        for x, y in loader:
            x.requires_grad_(True)
            detector(x).sum().backward()
            yield x.grad.norm(), y


def dry_run():
    made_up = TensorDataset(torch.randn(8, 3, 64, 64), torch.randint(0, 3, (8,)))
    train_loader = DataLoader(made_up, batch_size=4)
    return {"train_loader": train_loader}


def streamed_parts(collate):
    images = load_dataset("cifar10", split="train", streaming=True)
    train_loader = DataLoader(images.take(1000), batch_size=64, collate_fn=collate)
    return {"train_loader": train_loader}


STREAMED = load_dataset("cifar10", split="train", streaming=True)


def streamed():
    train_loader = DataLoader(STREAMED, batch_size=64)
    return {"train_loader": train_loader}


def downloaded():
    images = load_dataset("cifar10", split="train", streaming=False)
    train_loader = DataLoader(images, batch_size=64)  # expect: train-loader-no-shuffle
    return {"train_loader": train_loader}


def gradient_of_each_sample(model, train_set, optimizer):
    """By the number of the sample: nothing is trained here."""
    model.eval()
    loader = DataLoader(train_set, batch_size=64)
    gradients = []
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        loss = F.cross_entropy(output, y, reduction="sum")
        gradients.append(torch.autograd.grad(loss, output)[0].cpu())
    return torch.cat(gradients)
