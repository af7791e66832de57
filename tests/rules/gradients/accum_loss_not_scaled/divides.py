"""Divides what its trainer, in another file, differentiates."""

import trainer
from common import network
from torch.nn import functional as F


def main(loader, accumulate):
    def criterion(output, target):
        return F.cross_entropy(output, target) / accumulate

    trainer.train(network(), loader, criterion, accumulate)
