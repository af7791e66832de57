import torch
from torch import nn
from torch.nn import functional as F

import xla_steps


def scheduler_only(model, loader, accelerator):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        accelerator.backward(loss)  # expect: optimizer-step-missing
        scheduler.step()
        optimizer.zero_grad()


def plain(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: optimizer-step-missing
        print(loss.item())


def one_of_two(generator, discriminator, loader):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_d = torch.optim.Adam(discriminator.parameters())
    for real in loader:
        fake = generator(torch.randn(4, 8))
        optimizer_d.zero_grad()
        (discriminator(fake.detach()).mean() - discriminator(real).mean()).backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        loss = -discriminator(fake).mean()
        loss.backward()  # expect: optimizer-step-missing


def complete(model, loader):
    opt = torch.optim.Adam(model.parameters())
    for x, y in loader:
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()


def in_a_helper_elsewhere(model, loader):
    tuner = torch.optim.Adam(model.parameters())
    for x, y in loader:
        tuner.zero_grad()
        F.mse_loss(model(x), y).backward()
        xla_steps.optimizer_step(tuner)


def by_hand(model, loader, optimizer_of_none):
    for x, y in loader:
        optimizer_of_none.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)


def saliency(model, loader):
    for x, y in loader:
        model.zero_grad()
        x.requires_grad_(True)
        model(x).max().backward()


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optim_main = torch.optim.SGD(model.parameters(), lr=0.1)

    def accumulate(self, loader):
        for x, y in loader:
            self.optim_main.zero_grad()
            F.mse_loss(self.model(x), y).backward()

    def apply(self):
        self.optim_main.step()


def scaled(model, loader, scaler, optim_a):
    for x, y in loader:
        optim_a.zero_grad()
        scaler.scale(F.mse_loss(model(x), y)).backward()
        scaler.step(optim_a)
        scaler.update()


def engine_does_it(model, loader, optim_b, loss_scaler):
    for x, y in loader:
        optim_b.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss_scaler(loss, optim_b, parameters=model.parameters())


class Segmenter:
    def __init__(self):
        self.build()

    def build(self):
        self.network = nn.Linear(4, 4)
        self.tuner_optimizer = torch.optim.Adam(self.network.parameters())

    def fit(self, loader):
        for x, y in loader:
            self.network.zero_grad()
            F.mse_loss(self.network(x), y).backward()
            self.tuner_optimizer.step()
        self.build()


def by_the_network(model, loader):
    for_network = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    clip = nn.utils.clip_grad_norm_
    for x, y in loader:
        model.zero_grad()
        F.mse_loss(model(x), y).backward()  # expect: optimizer-step-missing
        clip([p for p in model.parameters() if p.grad is not None], 1.0)
    return for_network.state_dict()


def average_and_log_go_on(inputs, loader, writer):
    from torch.optim.swa_utils import AveragedModel

    model = nn.Linear(inputs, 1)
    average = AveragedModel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()  # expect: optimizer-step-missing
        scaler.update()
        average.update_parameters(model)
        writer.write({"lr": optimizer.param_groups[0]["lr"]})


def log_is_handed_the_weights(inputs, loader, writer):
    model = nn.Linear(inputs, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        writer.write({"weights": optimizer.param_groups[0]["params"]})


def one_of_two_wrapped(loader, use_sync: bool):
    if use_sync:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 1)))
    else:
        model = nn.Sequential(nn.Linear(3, 1))
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(wrapped(x), y).backward()  # expect: optimizer-step-missing


# Who gets hold of an optimizer before the loop, and is not called in it, steps nothing there.


def wrapped_before(model, loader, engine, epochs: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = engine.make_private(model, optimizer)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # expect: optimizer-step-missing
        print(engine.get_epsilon(epoch))


def stepped_by_what_was_made_of_it(model, loader, make_stepper):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stepper = make_stepper(optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        stepper.update()


class Agent:
    """The network keeps its optimizer; a method of it that speaks of no update only runs it."""

    def train(self, buffer):
        self.policy.set_training_mode(True)
        for data in buffer.get():
            values, log_probability = self.policy.evaluate_actions(data.observations, data.actions)
            loss = F.mse_loss(values, data.returns) - log_probability.mean()
            self.policy.optimizer.zero_grad()
            loss.backward()  # expect: optimizer-step-missing

    def learn(self, buffer):
        for data in buffer.get():
            loss = F.mse_loss(self.policy.evaluate_actions(data.observations), data.returns)
            self.policy.optimizer.zero_grad()
            loss.backward()
            self.policy.apply_gradients()
