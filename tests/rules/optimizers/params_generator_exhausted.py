import itertools

import torch
from torch.nn.utils import clip_grad_norm_


def clipped(model, criterion, loader):
    params = model.parameters()
    optimizer = torch.optim.Adam(params)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        clip_grad_norm_(params, 1.0)  # expect: params-generator-exhausted
        optimizer.step()


def counted(model):
    trainable = (p for p in model.parameters() if p.requires_grad)
    print(sum(p.numel() for p in trainable))
    return torch.optim.SGD(trainable, lr=0.1)  # expect: params-generator-exhausted


def only_in_loop(model, optimizer, criterion, loader):
    params = itertools.chain(model.encoder.parameters(), model.decoder.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        clip_grad_norm_(params, 1.0)  # expect: params-generator-exhausted
        optimizer.step()


class Learner:
    def __init__(self, model):
        self.model = model
        self.params = filter(lambda p: p.requires_grad, model.parameters())
        self.optimizer = torch.optim.Adam(self.params)

    def learn(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(self.params, 5.0)  # expect: params-generator-exhausted
        self.optimizer.step()


def grouped(model, args, optimizer_cls):
    weights = model.parameters()
    for weight in weights:
        torch.nn.init.normal_(weight)
    groups = [{"params": weights, "lr": args.lr}]  # expect: params-generator-exhausted
    return optimizer_cls(groups)


def anew(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def listed(model, criterion, loader):
    params = list(filter(lambda p: p.requires_grad, model.parameters()))
    optimizer = torch.optim.Adam(params)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        clip_grad_norm_(params, 1.0)
        optimizer.step()


def listed_later(model):
    params = model.parameters()
    params = list(params)
    print(sum(p.numel() for p in params))
    return torch.optim.Adam(params)


def chosen(model, args):
    params = filter(lambda p: p.requires_grad, model.parameters())
    if args.optimizer == "sgd":
        return torch.optim.SGD(params, lr=args.lr)
    return torch.optim.Adam(params, lr=args.lr)


def chosen_by_branch(model, args):
    params = model.parameters()
    if args.optimizer == "sgd":
        optimizer = torch.optim.SGD(params, lr=args.lr)
    elif args.optimizer == "adam":
        optimizer = torch.optim.Adam(params, lr=args.lr)
    else:
        raise ValueError(args.optimizer)
    return optimizer


def chosen_by_tests(model, args):
    params = model.parameters()
    if args.optimizer == "sgd":
        optimizer = torch.optim.SGD(params, lr=args.lr)
    if args.optimizer == "adam":
        optimizer = torch.optim.Adam(params, lr=args.lr)
    return optimizer


def first_only(model):
    params = model.parameters()
    device = next(params).device
    return torch.optim.Adam(model.parameters()), device


def made_in_loop(models):
    for model in models:
        params = model.parameters()
        for p in params:
            p.requires_grad = False


def one_use(model):
    params = model.named_parameters()
    return {name: p.detach().clone() for name, p in params}
