"""Image classification on several devices: the loader is told two orders at once."""

import argparse

import torch
import torchvision
from torch.utils.data.distributed import DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()
    torch.distributed.init_process_group("nccl")
    transform = torchvision.transforms.Compose(
        [torchvision.transforms.RandomResizedCrop(224), torchvision.transforms.ToTensor()]
    )
    dataset = torchvision.datasets.ImageFolder("imagenet/train", transform=transform)
    sampler = DistributedSampler(dataset)
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,  # expect: sampler-with-shuffle
        num_workers=8,
        pin_memory=True,
        sampler=sampler,
    )
    model = torchvision.models.resnet50()
    model = torch.nn.parallel.DistributedDataParallel(model.cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
