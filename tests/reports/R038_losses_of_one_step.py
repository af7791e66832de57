"""Segmentation with several outputs: one sum of losses, one backward pass."""
# never: loss-accumulate-graph

from torch.nn import functional as F


def train_step(network, images, masks, classes, optimizer):
    optimizer.zero_grad()
    loss = 0
    for output in network(images):
        loss += F.binary_cross_entropy_with_logits(output, masks)
    loss += F.cross_entropy(network.classify(images), classes)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(network, loader, optimizer):
    total = 0.0
    for images, masks, classes in loader:
        total += train_step(network, images, masks, classes, optimizer)
    return total
