"""Image and text pretraining on several devices: the same order in every epoch."""

import torch
from torch import distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def create_loader(dataset, batch_size: int, workers: int):
    sampler = DistributedSampler(  # expect: sampler-set-epoch-missing
        dataset, num_replicas=dist.get_world_size(), rank=dist.get_rank(), shuffle=True
    )
    return DataLoader(
        dataset, batch_size=batch_size, num_workers=workers, sampler=sampler, drop_last=True
    )


def train(model, loader, optimizer, device):
    model.train()
    for images, captions in loader:
        image_features, text_features = model(images.to(device), captions.to(device))
        logits = image_features @ text_features.t()
        labels = torch.arange(len(logits), device=device)
        loss = F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(model, dataset, epochs: int, device):
    loader = create_loader(dataset, 64, 8)
    model = DistributedDataParallel(model.to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(epochs):
        train(model, loader, optimizer, device)
