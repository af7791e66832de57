"""Evaluation code that switches gradients off, with and without parentheses."""

import contextlib

import torch
from torch import inference_mode, no_grad


def validate(model, loader, criterion):
    model.eval()
    total = 0.0
    with torch.no_grad:  # expect: no-grad-uncalled
        for x, y in loader:
            total += criterion(model(x), y).item()
    return total / len(loader)


def predict(model, batches):
    with inference_mode, contextlib.suppress(StopIteration):  # expect: no-grad-uncalled
        return [model(batch) for batch in batches]


def sample(model, noise, device_type):
    with torch.autocast(device_type), no_grad:  # expect: no-grad-uncalled
        image = model(noise)
        with torch.enable_grad:  # expect: no-grad-uncalled
            return image


def evaluate(model, loader, criterion):
    with torch.no_grad():
        return sum(criterion(model(x), y).item() for x, y in loader)


def step(model, x, is_training):
    context = contextlib.nullcontext if is_training else torch.no_grad
    with context():
        return model(x)


def run(model, x):
    frozen = torch.inference_mode()
    with frozen:
        return model(x)


@torch.no_grad
def embed(model, x):
    return model(x)


@torch.inference_mode
def features(model, x):
    return model(x)


with contextlib.ExitStack() as stack:
    stack.enter_context(torch.no_grad())
