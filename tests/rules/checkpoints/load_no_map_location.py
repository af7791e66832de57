"""Checkpoints loaded with and without a device, and files that are no checkpoints."""

import torch


def evaluate(model, path):
    model.load_state_dict(torch.load(path))  # expect: load-no-map-location


def resume(model, optimizer, args):
    checkpoint = torch.load(args.resume, weights_only=True)  # expect: load-no-map-location
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"]


def whole_model(path):
    model = torch.load("checkpoints/best_model.pth")  # expect: load-no-map-location
    return model.eval()


# What is right.


def on_the_cpu(model, path, device):
    model.load_state_dict(torch.load(path, map_location="cpu"))
    model.load_state_dict(torch.load(path, device))
    model.load_state_dict(torch.load(path, map_location=lambda storage, _: storage))


def with_options(model, path, **options):
    model.load_state_dict(torch.load(path, **options))


def both_cases(model, path):
    if torch.cuda.is_available():
        state = torch.load(path)
    else:
        state = torch.load(path, map_location="cpu")
    model.load_state_dict(state)


class Processed:
    def __init__(self, folder):
        self.data, self.slices = torch.load(folder / "processed_data.pt")
        self.labels = torch.load(folder / "labels.pt")
        self.vocabulary = torch.load(folder / "vocab.pt")


def schedules_hold_no_tensors(scheduler, folder):
    scheduler.load_state_dict(torch.load(folder / "checkpoint" / "scheduler.pt"))


def best_epoch_of_this_run(model, path):
    with open(path, "wb") as handle:
        torch.save(model, handle)
    with open(path, "rb") as handle:
        model = torch.load(handle)
    return model
