"""When averages of the weights are updated."""

import copy

from timm.utils import ModelEmaV2
from torch.nn import functional as F


def before_the_step(model, model_ema, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        model_ema.update(model)  # expect: ema-update-cadence
        scaler.step(optimizer)
        scaler.update()


def on_each_micro_batch(model, ema, loader, optimizer, every: int):
    for step, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / every).backward()
        if (step + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        if ema is not None:
            ema.update(model)  # expect: ema-update-cadence


def with_accelerate(accelerator, model, ema_model, loader, optimizer):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(F.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
            ema_model.step(model.parameters())  # expect: ema-update-cadence


def never(model, loader, optimizer, save):
    ema = ModelEmaV2(model, decay=0.999)  # expect: ema-update-cadence
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    save(ema.module.state_dict())


# What is right.


def after_the_step(model, loader, optimizer, save):
    ema = ModelEmaV2(model, decay=0.999)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        ema.update(model)
    save(ema.module.state_dict())


def after_accumulating(model, ema, loader, optimizer, every: int):
    for step, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / every).backward()
        if (step + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
            ema.update(model)


def when_gradients_were_shared(accelerator, model, ema_model, loader, optimizer):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(F.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
            if accelerator.sync_gradients:
                ema_model.step(model.parameters())
        if accelerator.sync_gradients:
            ema_model.update(model)


def now_and_then(model, ema, loader, optimizer):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step % 10 == 0:
            ema.update(model)


def momentum_encoder_first(online, ema_target, loader, optimizer):
    for x, _ in loader:
        ema_target.update(online)
        optimizer.zero_grad()
        F.mse_loss(online(x), ema_target(x)).backward()
        optimizer.step()


def average_of_the_loss(model, loss_ema, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        loss_ema.update(loss.item())
        optimizer.step()


def handed_to_a_trainer(model, trainer):
    ema = ModelEmaV2(copy.deepcopy(model))
    return trainer(model, ema)


def before_the_step_of_several_micro_batches(model, ema, batches, optimizer, accumulate: int):
    while True:
        optimizer.zero_grad()
        for _ in range(accumulate):
            x, y = next(batches)
            (F.cross_entropy(model(x), y) / accumulate).backward()
        ema.update(model)  # expect: ema-update-cadence
        optimizer.step()
