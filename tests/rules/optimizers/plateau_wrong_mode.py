import numpy as np
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau


def default_mode(model, train, evaluate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer, factor=0.5)
    for epoch in range(epochs):
        train(model, optimizer)
        val_loss, val_acc = evaluate(model)
        scheduler.step(val_acc)  # expect: plateau-wrong-mode


def wrong_max(model, train, evaluate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer, "max")
    for epoch in range(epochs):
        train(model, optimizer)
        losses = evaluate(model)
        scheduler.step(np.mean(losses))  # expect: plateau-wrong-mode


def from_dictionary(model, train, evaluate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer, mode="min")
    for epoch in range(epochs):
        train(model, optimizer)
        metrics = evaluate(model)
        scheduler.step(metrics["mIoU"])  # expect: plateau-wrong-mode


def right(model, train, evaluate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    by_loss = ReduceLROnPlateau(optimizer)
    by_dice = ReduceLROnPlateau(optimizer, "max", patience=2)
    for epoch in range(epochs):
        train(model, optimizer)
        valid_loss, dice = evaluate(model)
        by_loss.step(valid_loss / epochs)
        by_dice.step(dice)


def turned(model, train, evaluate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer)
    for epoch in range(epochs):
        train(model, optimizer)
        accuracy = evaluate(model)
        scheduler.step(-accuracy)
        scheduler.step(1 - accuracy)


def turned_before(model, train, evaluate, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer)
    for epoch in range(epochs):
        train(model, optimizer)
        acc = -evaluate(model)
        scheduler.step(acc)


def unclear(model, train, evaluate, epochs, mode):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer)
    chosen = ReduceLROnPlateau(optimizer, mode)
    for epoch in range(epochs):
        train(model, optimizer)
        score, acc_loss, error_rate, accuracy = evaluate(model)
        scheduler.step(score)
        scheduler.step(acc_loss)
        scheduler.step(error_rate)
        chosen.step(accuracy)


def loss_of_another_name(model, criterion, train, batches):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = ReduceLROnPlateau(optimizer, "max")
    for epoch in range(10):
        train(model, optimizer)
        held_out = 0.0
        for x, y in batches:
            held_out += criterion(model(x), y).item() * len(y)
        held_out /= len(batches)
        scheduler.step(held_out)  # expect: plateau-wrong-mode
