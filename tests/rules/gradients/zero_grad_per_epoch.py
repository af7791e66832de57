import torch
from torch import nn


def once_an_epoch(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        optimizer.zero_grad()  # expect: zero-grad-per-epoch
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


def once_before_everything(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()  # expect: zero-grad-per-epoch
    for epoch in range(epochs):
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def one_batch(model, batch, optimizer):
    x, y = batch
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def steps_in_a_helper(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        model.zero_grad()  # expect: zero-grad-per-epoch
        for batch in loader:
            one_batch(model, batch, optimizer)


def at_the_end_of_the_epoch(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        for x, y in loader:
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        optimizer.zero_grad()  # expect: zero-grad-per-epoch


def one_step_an_epoch(model, chunks, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        optimizer.zero_grad()
        for x, y in chunks:
            (nn.functional.mse_loss(model(x), y) / len(chunks)).backward()
        optimizer.step()


def clears_in_the_loop_as_well(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        optimizer.zero_grad()
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def accumulates(model, loader, epochs, accumulation):
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.zero_grad()
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            (nn.functional.mse_loss(model(x), y) / accumulation).backward()
            if (i + 1) % accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()


def two_phases(head, model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def a_single_lap(model, x, y):
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


def one_of_five(model, loader, name):
    if name == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    elif name == "adam":
        optimizer = torch.optim.Adam(model.parameters())
    elif name == "adamw":
        optimizer = torch.optim.AdamW(model.parameters())
    elif name == "rmsprop":
        optimizer = torch.optim.RMSprop(model.parameters())
    else:
        optimizer = torch.optim.Adagrad(model.parameters())
    optimizer.zero_grad()
    for x, y in loader:
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
