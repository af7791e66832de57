from contextlib import nullcontext

from torch.nn import functional as F


def first_instead_of_last(model, loader, optimizer, k):
    for i, (x, y) in enumerate(loader):
        context = nullcontext() if i % k == 0 else model.no_sync()  # expect: accum-no-sync
        with context:
            (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def wrong_way_round(model, loader, optimizer, k):
    for i, (x, y) in enumerate(loader):
        is_last = (i + 1) % k == 0 or i + 1 == len(loader)
        if is_last:
            with model.no_sync():  # expect: accum-no-sync
                (F.cross_entropy(model(x), y) / k).backward()
        else:
            (F.cross_entropy(model(x), y) / k).backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()


def backward_only(model, loader, optimizer, k):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y) / k
        if (i + 1) % k != 0 and i + 1 != len(loader):
            with model.no_sync():  # expect: accum-no-sync
                loss.backward()
        else:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def right(model, loader, optimizer, k):
    for i, (x, y) in enumerate(loader):
        is_last = (i + 1) % k == 0 or i + 1 == len(loader)
        with nullcontext() if is_last else model.no_sync():
            (F.cross_entropy(model(x), y) / k).backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()


def nano(model, loader, optimizer, k):
    for i, (x, y) in enumerate(loader):
        model.require_backward_grad_sync = (i + 1) % k == 0
        (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def decided_elsewhere(model, loader, optimizer, k, single):
    for i, (x, y) in enumerate(loader):
        with nullcontext() if single else model.no_sync():
            (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
