"""The schedule is made here, and steps where nobody knows what it is."""

import torch
from project_engine import Engine


def main(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 60, 80])
    Engine(model, optimizer, schedule, loader).run(90)
