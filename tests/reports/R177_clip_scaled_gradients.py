import torch
from torch import nn


def train_one_epoch(model, criterion, data_loader, optimizer, device, grad_scaler, clip_norm):
    model.train()
    for images, target in data_loader:
        images, target = images.to(device), target.to(device)
        with torch.cuda.amp.autocast():
            loss = criterion(model(images), target)
        optimizer.zero_grad()
        grad_scaler.scale(loss).backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)  # expect: clip-before-unscale
        grad_scaler.step(optimizer)
        grad_scaler.update()
