"""Loaders for validation and test: which data they really walk."""

import copy

import torch
import torchvision
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    random_split,
)
from torch_geometric.loader import NeighborLoader


# What must be flagged.


def by_name(train_dataset, val_dataset):
    train_loader = DataLoader(train_dataset, batch_size=64, shuffle=True)
    val_loader = DataLoader(train_dataset, batch_size=64)  # expect: eval-on-train-data
    return train_loader, val_loader


def by_argument(transform):
    trainset = torchvision.datasets.CIFAR10("data", train=True, transform=transform)
    testset = torchvision.datasets.CIFAR10("data", train=True, transform=transform)
    trainloader = DataLoader(trainset, batch_size=128, shuffle=True)
    testloader = DataLoader(testset, batch_size=128)  # expect: eval-on-train-data
    return trainloader, testloader


def the_same_object(folder, make_dataset):
    dataset = make_dataset(folder)
    loaders = {
        "train": DataLoader(dataset, batch_size=8, shuffle=True),
        "val": DataLoader(dataset, batch_size=8),  # expect: eval-on-train-data
    }
    return loaders


def make_loader(dataset, batch_size: int, shuffle: bool):
    return DataLoader(dataset, batch_size=batch_size, shuffle=shuffle)


def through_a_helper(train_set, dev_set):
    train_loader = make_loader(train_set, 32, True)
    dev_loader = make_loader(train_set, 32, False)  # expect: eval-on-train-data
    return train_loader, dev_loader


class Experiment:
    def __init__(self, train_data, valid_data):
        self.train_data = train_data
        self.valid_data = valid_data

    def train_loader(self):
        return DataLoader(self.train_data, 16, shuffle=True)

    def valid_loader(self):
        return DataLoader(self.train_data, 16)  # expect: eval-on-train-data


def from_hub(load_dataset):
    raw = load_dataset("squad")
    eval_dataloader = DataLoader(raw["train"], batch_size=8)  # expect: eval-on-train-data
    return eval_dataloader


def on_several_devices(train_set, test_set):
    sampler = DistributedSampler(test_set, shuffle=False)
    train_loader = DataLoader(train_set, 64, sampler=DistributedSampler(train_set))
    test_loader = DataLoader(train_set, 64, sampler=sampler)  # expect: eval-on-train-data
    return train_loader, test_loader


def transforms_set_later(folder, augment, plain):
    train_set = torchvision.datasets.ImageFolder(f"{folder}/train")
    train_set.transform = augment
    val_set = torchvision.datasets.ImageFolder(f"{folder}/val")
    val_set.transform = plain
    val_loader = DataLoader(train_set, 64)  # expect: eval-on-train-data
    return val_loader


# What must not.


def train_scores_on_purpose(train_set, val_set):
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    train_eval_loader = DataLoader(train_set, batch_size=256)
    val_loader = DataLoader(val_set, batch_size=256)
    return train_loader, train_eval_loader, val_loader


def picked_by_samplers(dataset, train_indices, val_indices):
    train_loader = DataLoader(dataset, sampler=SubsetRandomSampler(train_indices))
    val_loader = DataLoader(dataset, sampler=SubsetRandomSampler(val_indices))
    return train_loader, val_loader


def parts_of_one(train_full):
    train_set, val_set = random_split(train_full, [0.9, 0.1])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=64)
    held_out_loader = DataLoader(Subset(train_full, range(100)), batch_size=64)
    return train_loader, val_loader, held_out_loader


def only_the_collate_function(train_set, val_set):
    train_loader = DataLoader(train_set, shuffle=True, collate_fn=train_set.collate)
    val_loader = DataLoader(val_set, collate_fn=train_set.collate)
    return train_loader, val_loader


class Scans(Dataset):
    def __init__(self, folder):
        self.folder = folder
        self.part = "train"

    def set_part(self, part):
        self.part = part


def switched(folder):
    scans = Scans(folder)
    train_loader = DataLoader(scans, shuffle=True)
    val_scans = copy.copy(scans)
    val_scans.set_part("val")
    val_loader = DataLoader(val_scans)
    return train_loader, val_loader


def split_asked_for(transform, root):
    train_set = torchvision.datasets.STL10(root, split="train", transform=transform)
    test_set = torchvision.datasets.STL10(root, split="test", transform=transform)
    train_loader = DataLoader(train_set, 32, shuffle=True)
    test_loader = DataLoader(test_set, 32)
    return train_loader, test_loader


def small_run(train_set, val_set, overfit: bool):
    if overfit:
        val_loader = DataLoader(train_set, batch_size=4)
    else:
        val_loader = DataLoader(val_set, batch_size=4)
    return val_loader


def features_for_neighbours(train_set, test_set):
    memory_loader = DataLoader(train_set, batch_size=256)
    test_loader = DataLoader(test_set, batch_size=256)
    return memory_loader, test_loader


def cut_by_hand(root):
    train_set = torchvision.datasets.MNIST(root, train=True)
    val_set = torchvision.datasets.MNIST(root, train=True)
    train_set.data = train_set.data[:50_000]
    val_set.data = val_set.data[50_000:]
    train_loader = DataLoader(train_set, 64, shuffle=True)
    val_loader = DataLoader(val_set, 64)
    return train_loader, val_loader


def maybe_without_validation(train_set, val_set, has_validation: bool):
    held_out = val_set if has_validation else train_set
    val_loader = DataLoader(held_out, batch_size=64)
    return val_loader


def seed_nodes_of_one_graph(data):
    train_loader = NeighborLoader(data, [10, 10], input_nodes=data.train_mask, shuffle=True)
    val_loader = NeighborLoader(data, [10, 10], input_nodes=data.val_mask)
    return train_loader, val_loader


def masks_of_one_graph(data):
    train_loader = NeighborLoader(data, num_neighbors=[10, 10], shuffle=True)
    test_loader = NeighborLoader(data, num_neighbors=[10, 10])
    return train_loader, test_loader


def dry_run():
    x = torch.randn(8, 3, 64, 64)
    made_up = torch.utils.data.TensorDataset(x, torch.randint(0, 3, (8,)))
    train_loader = torch.utils.data.DataLoader(made_up, batch_size=4, shuffle=True)
    val_loader = torch.utils.data.DataLoader(made_up, batch_size=4)
    return train_loader, val_loader


class NobodyHereMakesTheTrainer:
    """What its constructor makes counts where one of its methods starts to train."""

    def __init__(self, model, train_set, val_set):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.train_data = DataLoader(train_set, batch_size=64, shuffle=True)
        self.val_data = DataLoader(train_set, batch_size=64)  # expect: eval-on-train-data
        self.test_data = DataLoader(val_set, batch_size=64)

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.train_data:
                self.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()


class MadeBelow:
    def __init__(self, model, data, held_out):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.train_data = DataLoader(data, batch_size=64, shuffle=True)
        self.val_data = DataLoader(held_out, batch_size=64)

    def fit(self):
        for x, y in self.train_data:
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    def score(self):
        self.model.eval()
        with torch.no_grad():
            return sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_data)


def two_parts(model, train_set, val_set):
    return MadeBelow(model, train_set, val_set)


def batches_of(features, labels, is_training=False):
    train_set = TensorDataset(torch.tensor(features), torch.tensor(labels))
    train_loader = DataLoader(train_set, batch_size=64, shuffle=is_training)
    return train_loader


def one_helper_for_all_parts(features, labels, held_out_features, held_out_labels):
    train_loader = batches_of(features, labels, is_training=True)
    val_loader = batches_of(held_out_features, held_out_labels)
    return train_loader, val_loader


def batches_from(train_data, is_training=False):
    train_loader = DataLoader(train_data, batch_size=64, shuffle=is_training)
    return train_loader


def the_wrong_part_for_a_helper(train_set, val_set):
    train_loader = batches_from(train_set, is_training=True)
    val_loader = batches_from(train_set)  # expect: eval-on-train-data
    test_loader = batches_from(val_set)
    return train_loader, val_loader, test_loader
