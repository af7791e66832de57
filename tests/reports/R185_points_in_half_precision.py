import torch
import torch.nn.functional as F


def train_epoch(network, optimizer, loader):
    network.train()
    for points, labels in loader:
        points, labels = points.cuda(), labels.cuda()
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():  # expect: fp16-autocast-no-scaler
            logits = network(points)
            loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
