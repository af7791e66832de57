import torch
import torch.nn.functional as F


class GraphClassifier(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first = torch.nn.Linear(features, 64)
        self.second = torch.nn.Linear(64, classes)

    def forward(self, x, adjacency):
        return self.second(adjacency @ F.relu(self.first(adjacency @ x)))


def train(model, graphs, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        model.train()
        for graph in graphs:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(graph.x, graph.adjacency), graph.y)
            loss.backward()
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)  # expect: clip-wrong-place
