"""Trains a lip reader on the mouths that the helper finds."""

from torch.nn import functional as F

from face_boxes import boxes


def train(model, detector, loader, optimizer):
    model.train()
    for frames, words in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(boxes(detector, frames)), words)
        loss.backward()
        optimizer.step()
