import torch


class Engine:
    def __init__(self, model, opt, sch, train_loader):
        self.model, self.opt, self.sch = model, opt, sch
        self.train_loader = train_loader

    def run(self, epochs):
        for _ in range(epochs):
            self.train_one_epoch()

    def train_one_epoch(self):
        for x, y in self.train_loader:
            self.opt.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            self.opt.step()
            self.sch.step()  # expect: scheduler-cadence-mismatch
