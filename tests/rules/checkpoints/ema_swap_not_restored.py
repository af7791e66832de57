"""Averaged weights in and out of the model that trains."""

import copy

import torch


def one_epoch(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


def kept_by_reference(model, ema_state, validate):
    cached = model.state_dict()  # expect: ema-swap-not-restored
    model.load_state_dict(ema_state)
    validate(model)
    model.load_state_dict(cached)


def in_the_class_way(model, ema, loader, optimizer, validate):
    for _ in range(10):
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            ema.update(model)
        ema.copy_to(model.parameters())  # expect: ema-swap-not-restored
        validate(model)


def loaded_over(model, ema_model, loader, optimizer, validate, every: int):
    for step, x in enumerate(loader):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if step % every == 0:
            model.load_state_dict(ema_model.state_dict())  # expect: ema-swap-not-restored
            validate(model)


# What is right.


def kept_by_copy(model, ema_state, validate):
    cached = copy.deepcopy(model.state_dict())
    model.load_state_dict(ema_state)
    validate(model)
    model.load_state_dict(cached)


def stored_and_restored(model, ema, loader, optimizer, validate):
    for _ in range(10):
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            ema.update(model)
        ema.store(model.parameters())
        ema.copy_to(model.parameters())
        validate(model)
        ema.restore(model.parameters())


def at_the_end(model, ema, loader, optimizer, path, epochs: int):
    for epoch in range(epochs):
        for x in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            ema.update(model)
        if epoch == epochs - 1:
            ema.copy_to(model.parameters())
    ema.copy_to(model.parameters())
    torch.save(model.state_dict(), path)


def into_a_second_model(model, shown, ema, loader, optimizer, validate):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        ema.update(model)
        ema_model = copy.deepcopy(model)
        ema.copy_to(ema_model.parameters())
        validate(ema_model)
        ema_model.load_state_dict(model.state_dict())


def into_a_copy(model, ema, loader, optimizer):
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            ema.update(model.parameters())
        preview = copy.deepcopy(model)
        ema.copy_to(preview.parameters())
        torch.save(preview.eval().state_dict(), f"{epoch}.pt")


def into_the_model_for_tests(model, test_model, model_ema, loader, optimizer):
    for _ in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            model_ema.update(model)
        test_model.load_state_dict(model_ema.state_dict())
        evaluate(test_model)
