import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_norm_


def helper_unscales(scaler, optimizer, parameters):
    scaler.unscale_(optimizer)
    clip_grad_norm_(parameters, 1.0)


def step_with(scaler, optimizer, model, max_norm):
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # expect: clip-before-unscale
    scaler.step(optimizer)
    scaler.update()


def plain(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()


def through_helper(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        step_with(scaler, optimizer, model, 1.0)


def optional_clipping(model, optimizer, criterion, loader, args):
    scaler = GradScaler(enabled=args.amp)
    for x, y in loader:
        with autocast(enabled=args.amp):
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        if args.clip_grad is not None:
            norm = clip_grad_norm_(model.parameters(), args.clip_grad)  # expect: clip-before-unscale
            print(norm)
        scaler.step(optimizer)
        scaler.update()


def unscaled_too_late(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)  # expect: clip-before-unscale
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()


def optional_scaler(model, optimizer, criterion, loader, scaler=None):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if scaler is not None:
            scaler.scale(loss).backward()
            clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-before-unscale
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.model(batch).mean()
        self.scaler.scale(loss).backward()
        clip_grad_norm_(self.model.parameters(), 1.0)  # expect: clip-before-unscale
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def right_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.model(batch).mean()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()


def right(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        helper_unscales(scaler, optimizer, model.parameters())
        scaler.step(optimizer)
        scaler.update()


def right_behind_flags(model, optimizer, criterion, loader, args):
    scaler = GradScaler(enabled=args.amp)
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / args.accumulation
        scaler.scale(loss).backward()
        if (step + 1) % args.accumulation == 0:
            if args.clip:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def two_flags_that_agree(model, optimizer, criterion, loader, args):
    scaler = GradScaler() if args.precision == "fp16" else None
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if scaler:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if args.use_fp16:
            scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()


def two_optimizers(generator, critic, opt_g, opt_c, loader):
    scaler = GradScaler()
    for x in loader:
        opt_c.zero_grad()
        loss_c = critic(x).mean()
        scaler.scale(loss_c).backward()
        scaler.unscale_(opt_c)
        clip_grad_norm_(critic.parameters(), 1.0)
        scaler.step(opt_c)
        opt_g.zero_grad()
        loss_g = critic(generator(x)).mean()
        scaler.scale(loss_g).backward()
        scaler.unscale_(opt_g)
        clip_grad_norm_(generator.parameters(), 1.0)
        scaler.step(opt_g)
        scaler.update()


def switched_off(model, optimizer, criterion, loader):
    scaler = GradScaler(enabled=False)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def scaled_threshold(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()


def accelerated(accelerator, model, optimizer, criterion, loader):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = criterion(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
