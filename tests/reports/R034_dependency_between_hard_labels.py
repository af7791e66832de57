"""A hierarchical image classifier: its dependency loss compares labels that are already hard."""

import torch
from torch.nn import functional as F


def dependency_loss(coarse_scores, fine_scores, parents):
    coarse = torch.argmax(coarse_scores, dim=1)
    fine = torch.argmax(fine_scores, dim=1)
    return F.mse_loss(coarse.float(), parents[fine].float())  # expect: argmax-before-loss


def train(network, loader, parents, optimizer):
    for images, coarse, fine in loader:
        optimizer.zero_grad()
        coarse_scores, fine_scores = network(images)
        loss = F.cross_entropy(coarse_scores, coarse) + F.cross_entropy(fine_scores, fine)
        loss = loss + dependency_loss(coarse_scores, fine_scores, parents)
        loss.backward()
        optimizer.step()
