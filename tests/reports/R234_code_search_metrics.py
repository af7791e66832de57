"""Code search: the metrics of an epoch still hold the epochs before."""

import torch
from torch.nn import functional as F
from torchmetrics import MeanMetric
from torchmetrics.retrieval import RetrievalMRR


class Trainer:
    def __init__(self, model, optimizer, train_loader, valid_loader):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.valid_loader = valid_loader
        self.loss_metric = MeanMetric()
        self.mrr_metric = RetrievalMRR()

    def train(self):
        self.model.train()
        for queries, codes in self.train_loader:
            scores = self.model(queries, codes)
            loss = F.cross_entropy(scores, torch.arange(len(scores)))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.loss_metric.update(loss.detach())

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        for queries, codes in self.valid_loader:
            scores = self.model(queries, codes)
            rows = torch.arange(len(scores)).repeat_interleave(len(scores))
            self.mrr_metric.update(scores.flatten(), torch.eye(len(scores)).bool().flatten(), rows)

    def fit(self, epochs: int):
        for epoch in range(epochs):
            self.train()
            self.validate()
            loss = self.loss_metric.compute()  # expect: metric-not-reset
            mrr = self.mrr_metric.compute()  # expect: metric-not-reset
            print(f"{epoch}: loss {loss:.3f}, MRR {mrr:.3f}")
