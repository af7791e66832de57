"""Two projects in one repository, whose scripts have a class and a module of the same name."""

import torch


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 30)

    def train(self):
        self.schedule.step()  # expect: scheduler-before-optimizer
        self.model.train()
        for images, labels in self.loader:
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(images), labels).backward()
            self.optimizer.step()
