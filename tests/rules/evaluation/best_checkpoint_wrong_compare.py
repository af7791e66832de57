"""Picking the best epoch: what is compared, from where it starts, and whether it is kept up."""

import copy
import math

import numpy as np
import torch


# What must be flagged.


def higher_loss(model, epochs, train, validate):
    best_loss = float("inf")
    for epoch in range(epochs):
        train(model)
        val_loss = validate(model)
        if val_loss > best_loss:  # expect: best-checkpoint-wrong-compare
            best_loss = val_loss
            torch.save(model.state_dict(), "best.pt")


def lower_accuracy(model, epochs, train, validate):
    best_acc, best_state = 1.0, None
    for epoch in range(epochs):
        train(model)
        acc = validate(model)
        if best_acc >= acc:  # expect: best-checkpoint-wrong-compare
            best_acc = acc
            best_state = copy.deepcopy(model.state_dict())
    return best_state


def starts_at_zero(model, epochs, train, validate):
    lowest_val_loss = 0.0
    for epoch in range(epochs):
        train(model)
        val_loss = validate(model)
        if epoch > 5 and val_loss < lowest_val_loss:  # expect: best-checkpoint-wrong-compare
            lowest_val_loss = val_loss
            torch.save(model.state_dict(), "best.pt")


def starts_at_infinity(model, epochs, train, validate):
    best_score = np.inf
    for epoch in range(epochs):
        train(model)
        score = validate(model)
        if score > best_score:  # expect: best-checkpoint-wrong-compare
            best_score = score
            torch.save(model.state_dict(), "best.pt")


def never_stored(model, epochs, train, validate):
    best_dice = 0.0
    for epoch in range(epochs):
        train(model)
        dice = validate(model)
        if dice > best_dice:  # expect: best-checkpoint-wrong-compare
            torch.save(model.state_dict(), "best.pt")


def anew_in_each_epoch(model, epochs, train, validate):
    for epoch in range(epochs):
        best_f1 = 0.0
        train(model)
        f1 = validate(model)
        if f1 > best_f1:  # expect: best-checkpoint-wrong-compare
            best_f1 = f1
            torch.save(model.state_dict(), "best.pt")


def by_maximum(model, epochs, train, validate, save_checkpoint):
    best_loss = math.inf
    for epoch in range(epochs):
        train(model)
        loss = validate(model)
        is_best = loss < best_loss
        best_loss = max(loss, best_loss)  # expect: best-checkpoint-wrong-compare
        save_checkpoint(model, is_best)


def flag_the_wrong_way(model, epochs, train, validate, save_checkpoint):
    best_acc1 = 0
    for epoch in range(epochs):
        train(model)
        acc1 = validate(model)
        is_best = acc1 < best_acc1  # expect: best-checkpoint-wrong-compare
        best_acc1 = max(acc1, best_acc1)
        save_checkpoint({"state": model.state_dict(), "best": best_acc1}, is_best)


def within_the_validation(model, epochs, train, val_loader):
    best_accuracy = 0.0
    for epoch in range(epochs):
        train(model)
        correct = total = 0
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
            total += len(y)
            accuracy = correct / total
            if accuracy > best_accuracy:  # expect: best-checkpoint-wrong-compare
                best_accuracy = accuracy
                torch.save(model.state_dict(), "best.pt")


class Trainer:
    def __init__(self, model):
        self.model = model
        self.best_loss = 0

    def after_epoch(self, metrics):
        if metrics["val_loss"] < self.best_loss:  # expect: best-checkpoint-wrong-compare
            self.best_loss = metrics["val_loss"]
            torch.save(self.model.state_dict(), "best.pt")


# What must not.


def right_with_patience(model, epochs, train, validate, patience):
    best_loss, waited = float("inf"), 0
    for epoch in range(epochs):
        train(model)
        val_loss = validate(model)
        if val_loss > best_loss:
            waited += 1
            if waited > patience:
                torch.save(model.state_dict(), "last.pt")
                break
        else:
            best_loss, waited = val_loss, 0
            torch.save(model.state_dict(), "best.pt")


def negated(model, epochs, train, validate):
    best_loss = -float("inf")
    for epoch in range(epochs):
        train(model)
        neg_val_loss = -validate(model)
        if neg_val_loss > best_loss:
            best_loss = neg_val_loss
            torch.save(model.state_dict(), "best.pt")


def first_is_none(model, epochs, train, validate):
    best_loss = None
    for epoch in range(epochs):
        train(model)
        val_loss = validate(model)
        if best_loss is None or val_loss < best_loss:
            best_loss = val_loss
            torch.save(model.state_dict(), "best.pt")


def zero_means_not_yet(model, epochs, train, validate):
    best_loss = 0
    for epoch in range(epochs):
        train(model)
        val_loss = validate(model)
        if epoch == 0 or val_loss < best_loss:
            best_loss = val_loss
            torch.save(model.state_dict(), "best.pt")


def folds(make_model, epochs, train, validate):
    for fold in range(5):
        model, best_acc = make_model(), 0.0
        for epoch in range(epochs):
            train(model, fold)
            acc = validate(model, fold)
            if acc > best_acc:
                best_acc = acc
                torch.save(model.state_dict(), f"fold{fold}.pt")


def hardest_example(losses, examples):
    max_loss, hardest = 0.0, None
    for loss, example in zip(losses, examples):
        if loss > max_loss:
            max_loss, hardest = loss, copy.deepcopy(example)
    max_loss = max(max_loss, 1e-8)
    return hardest, max_loss


def stops_when_it_explodes(model, losses):
    best_loss = math.inf
    for loss in losses:
        if loss > 4 * best_loss:
            break
        if loss < best_loss:
            best_loss = loss
    return best_loss


def resumed(model, epochs, train, validate, checkpoint):
    best_acc = 0
    if checkpoint is not None:
        best_acc = checkpoint["best_acc"]
    for epoch in range(epochs):
        train(model)
        acc = validate(model)
        is_best = acc > best_acc
        best_acc = max(acc, best_acc)
        if is_best:
            torch.save(model.state_dict(), "best.pt")


def kept_elsewhere(model, epochs, train, validate, state):
    for epoch in range(epochs):
        train(model)
        val_loss = validate(model)
        if val_loss < state.best_loss:
            state.update(val_loss)
            torch.save(model.state_dict(), "best.pt")


def both_ways(model, epochs, train, validate, flag, start):
    best_loss = start
    for epoch in range(epochs):
        train(model)
        loss = validate(model)
        if (flag and loss > best_loss) or (not flag and loss < best_loss):
            best_loss = loss
            torch.save(model.state_dict(), "best.pt")


def by_mode(model, epochs, train, validate, mode, best_loss):
    for epoch in range(epochs):
        train(model)
        loss = validate(model)
        if mode == "max":
            if loss > best_loss:
                best_loss = loss
                torch.save(model.state_dict(), "best.pt")
        elif loss < best_loss:
            best_loss = loss
            torch.save(model.state_dict(), "best.pt")


def after_a_warm_up(model, epochs, train, min_epoch=3):
    max_norm = 5
    for epoch in range(epochs):
        norm = train(model)
        if norm > max_norm:
            torch.save(model.state_dict(), f"exploded{epoch}.pt")
        if epoch > min_epoch:
            torch.save(model.state_dict(), "late.pt")


def last_one_saved_too(model, epochs, train, validate):
    best_loss, waited = math.inf, 0
    for epoch in range(epochs):
        train(model)
        loss = validate(model)
        if loss >= best_loss:
            waited += 1
            torch.save(model.state_dict(), "last.pt")
        if loss < best_loss:
            best_loss, waited = loss, 0
            torch.save(model.state_dict(), "best.pt")


def private(model, loader, epochs):
    best_identified = 1.0
    for _ in range(epochs):
        train(model)
        accuracy = identify(model, loader)
        # Lower is better: nobody is to be recognised.
        if accuracy < best_identified:
            best_identified = accuracy
            torch.save(model.state_dict(), "private.pt")
