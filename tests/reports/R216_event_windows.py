"""Event cameras: a validation dataset is made, and the loader gets the other one."""

import argparse

import torch
from torch.utils.data import DataLoader, Dataset


class EventWindows(Dataset):
    def __init__(self, folder, bins):
        self.folder, self.bins = folder, bins

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.zeros(self.bins, 180, 240), index % 10


def loaders(args):
    dataset = EventWindows(args.train_folder, args.bins)
    val_dataset = EventWindows(args.val_folder, args.bins)
    train_loader = DataLoader(dataset, args.batch_size, shuffle=True)
    val_loader = DataLoader(dataset, args.batch_size)  # expect: eval-on-train-data
    print(f"{len(dataset)} windows to train on, {len(val_dataset)} to validate on")
    return train_loader, val_loader


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-folder")
    parser.add_argument("--val-folder")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--bins", type=int, default=5)
    print(loaders(parser.parse_args()))
