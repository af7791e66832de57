"""An object holds the sampler from its constructor on; a comment on set_epoch tells nobody."""

import torch
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class HeldFromTheStart:
    def __init__(self, model, dataset):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        sampler = DistributedSampler(dataset)  # expect: sampler-set-epoch-missing
        self.loader = DataLoader(dataset, batch_size=8, sampler=sampler)

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
