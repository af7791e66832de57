"""Distributed image classification: the epoch's mean loss is a sum of graphs."""

import torch


def train(loader, model, criterion, optimizer, epoch):
    model.train()
    epoch_loss = 0
    for images, labels in loader:
        output = model(images.cuda(non_blocking=True))
        loss = criterion(output, labels.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss  # expect: loss-accumulate-graph
    print(epoch, (epoch_loss / len(loader)).item(), torch.cuda.max_memory_allocated())
