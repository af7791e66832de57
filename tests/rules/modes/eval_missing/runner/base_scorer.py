"""A base class whose heir is used elsewhere, with a model in eval mode."""

import torch


class BaseScorer:
    def __init__(self, model, test_loader):
        self.model = model
        self.test_loader = test_loader

    def score(self):
        hits = 0
        with torch.inference_mode():
            for x, y in self.test_loader:
                hits += (self.model(x).argmax(1) == y).sum().item()
        return hits
