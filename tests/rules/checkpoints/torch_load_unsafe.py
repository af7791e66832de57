"""Pickles that are opened, and files of which only weights are taken."""

import torch


def own_objects(path):
    return torch.load(path, map_location="cpu", weights_only=False)  # expect: torch-load-unsafe


# What is right.


def weights(model, path):
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))


def by_the_default_of_today(model, path):
    model.load_state_dict(torch.load(path, map_location="cpu"))


def as_the_caller_says(path, trusted: bool):
    return torch.load(path, weights_only=not trusted)
