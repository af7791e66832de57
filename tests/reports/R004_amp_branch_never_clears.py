"""Detection with optional mixed precision: only the full-precision branch clears the gradients."""

import torch
from torch import nn


def fit_one_epoch(net: nn.Module, optimizer, loss_function, loader, scaler, fp16: bool, cuda: bool):
    total = 0.0
    net.train()
    for iteration, (images, targets) in enumerate(loader):
        if cuda:
            images = images.cuda()
        if not fp16:
            optimizer.zero_grad()
            outputs = net(images)
            loss_value = loss_function(outputs, targets)
            loss_value.backward()
            optimizer.step()
        else:
            with torch.autocast("cuda"):
                outputs = net(images)
                loss_value = loss_function(outputs, targets)
            scaler.scale(loss_value).backward()  # expect: zero-grad-missing
            scaler.step(optimizer)
            scaler.update()
        total += loss_value.item()
    return total / (iteration + 1)
