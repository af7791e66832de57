"""Detector fine-tuning on a small card: every micro-batch clears what the others added up."""

import torch


def train_one_epoch(model, criterion, loader, optimizer, update_every):
    model.train()
    for step, (images, targets) in enumerate(loader):
        optimizer.zero_grad()  # expect: zero-grad-breaks-accumulation
        loss = criterion(model(images), targets) / update_every
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (step + 1) % update_every == 0 or step + 1 == len(loader):
            optimizer.step()
