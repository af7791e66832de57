"""Dropout stands in ``forward`` alone; ``inference`` goes around it, layer by layer."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torch_geometric.nn import SAGEConv


class LayerWise(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.convolutions = nn.ModuleList()
        for size in sizes:
            self.convolutions.append(SAGEConv(size, size))

    def forward(self, x, edges):
        for convolution in self.convolutions:
            x = F.dropout(convolution(x, edges), training=self.training)
        return x

    def inference(self, loader):
        for number in range(len(self.convolutions)):
            outputs = []
            for x, edges in loader:
                x = self.convolutions[number](x, edges)
                outputs.append(x.cpu())
        return torch.cat(outputs)


@torch.no_grad()
def test(model, subgraphs):
    return model.inference(subgraphs)


def train(model, loader, optimizer):
    model.train()
    for x, edges in loader:
        optimizer.zero_grad()
        model(x, edges).mean().backward()
        optimizer.step()


def main(graph):
    loader = DataLoader(graph, batch_size=16, shuffle=True)
    subgraphs = DataLoader(graph, batch_size=64, shuffle=False)
    model = LayerWise([16, 16])
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        train(model, loader, optimizer)
        print(test(model, subgraphs))
