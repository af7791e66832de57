import torch
import torch.nn as nn
from model import ClickModel


def main(loader):
    model = ClickModel(1000, 5000)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for user, item, clicked in loader:
        scores = model(user, item)
        loss = loss_fn(scores, clicked.float())  # expect: sigmoid-before-bce-logits
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
