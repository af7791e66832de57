import timm.scheduler
import torch
import transformers
from torch.optim import lr_scheduler
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, StepLR


def train_epoch(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


def top_of_epoch(model, criterion, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, 30)
    for epoch in range(90):
        scheduler.step()  # expect: scheduler-before-optimizer
        train_epoch(model, optimizer, criterion, loader)


def between_backward_and_step(model, criterion, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = transformers.get_linear_schedule_with_warmup(optimizer, 100, 1000)
    for x, y in loader:
        criterion(model(x), y).backward()
        scheduler.step()  # expect: scheduler-before-optimizer
        optimizer.step()
        optimizer.zero_grad()


def in_training_phase(model, criterion, loaders):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = lr_scheduler.MultiStepLR(optimizer, [30, 60])
    for epoch in range(90):
        for phase in ["train", "val"]:
            if phase == "train":
                scheduler.step()  # expect: scheduler-before-optimizer
                model.train()
            else:
                model.eval()
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = criterion(model(x), y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()


def behind_option(model, criterion, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, args.epochs) if args.cosine else None
    for epoch in range(args.epochs):
        if scheduler is not None:
            scheduler.step()  # expect: scheduler-before-optimizer
        train_epoch(model, optimizer, criterion, loader)


class Warmup(LRScheduler):
    def get_lr(self):
        return [base * min(1, self.last_epoch / 100) for base in self.base_lrs]


def own_scheduler(model, criterion, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = Warmup(optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        schedule.step()  # expect: scheduler-before-optimizer
        optimizer.step()


class Noam:
    def __init__(self, optimizer, width):
        self.optimizer = optimizer
        self.width = width
        self.steps = 0

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.width**-0.5 * self.steps**-0.5


def no_torch_scheduler(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=0)
    scheduler = Noam(optimizer, 512)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        scheduler.step()
        optimizer.step()


def timm_style(model, criterion, loader, args):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler, epochs = timm.scheduler.create_scheduler(args, optimizer)
    for epoch in range(epochs):
        scheduler.step(epoch)
        train_epoch(model, optimizer, criterion, loader)


def explicit_epoch(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = StepLR(optimizer, 30)
    for epoch in range(90):
        scheduler.step(epoch)
        train_epoch(model, optimizer, criterion, loader)


def right(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = StepLR(optimizer, 30)
    for epoch in range(90):
        train_epoch(model, optimizer, criterion, loader)
        scheduler.step()


def not_in_first_epoch(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = StepLR(optimizer, 30)
    for epoch in range(90):
        if epoch > 0:
            scheduler.step()
        train_epoch(model, optimizer, criterion, loader)


def resumed(model, criterion, loader, start):
    for fold in range(5):
        optimizer = torch.optim.Adam(model.parameters())
        scheduler = StepLR(optimizer, 30)
        for _ in range(start):
            scheduler.step()
        for epoch in range(start, 90):
            train_epoch(model, optimizer, criterion, loader)
            scheduler.step()


def silenced(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = StepLR(optimizer, 30)
    optimizer.step()
    for epoch in range(90):
        scheduler.step()
        train_epoch(model, optimizer, criterion, loader)


def unresolved_training(engine, model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = StepLR(optimizer, 30)
    for epoch in range(90):
        engine.train_epoch(model, optimizer, loader)
        scheduler.step()
        optimizer.step()


def exploration(agent, optimizer, scheduler, memory):
    for batch in memory:
        scheduler.step()
        optimizer.zero_grad()
        agent.loss(batch).backward()
        optimizer.step()


def other_optimizer(generator, critic, loader):
    opt_g = torch.optim.Adam(generator.parameters())
    opt_c = torch.optim.Adam(critic.parameters())
    schedule_c = StepLR(opt_c, 1000)
    for x in loader:
        opt_c.zero_grad()
        critic(x).mean().backward()
        opt_c.step()
        schedule_c.step()
        opt_g.zero_grad()
        critic(generator(x)).mean().backward()
        opt_g.step()
