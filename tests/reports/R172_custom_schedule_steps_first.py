# never: scheduler-before-optimizer
import torch


class WarmupSchedule(torch.optim.lr_scheduler._LRScheduler):
    """Sets the rate itself in ``step``; no value of the schedule is lost by stepping first."""

    def __init__(self, optimizer, warmup_steps):
        self.optimizer = optimizer
        self.warmup_steps = warmup_steps
        self.count = 0

    def step(self):
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.001 * min(1.0, self.count / self.warmup_steps)


def train(model, criterion, train_loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0)
    scheduler = WarmupSchedule(optimizer, 4000)
    for speech, text in train_loader:
        optimizer.zero_grad()
        criterion(model(speech), text).backward()
        scheduler.step()
        optimizer.step()
