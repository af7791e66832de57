import torch
from torch.nn import functional as F


def dropped(model, train_loader, optimizer, k):
    for i, (x, y) in enumerate(train_loader):
        loss = F.cross_entropy(model(x), y) / k
        loss.backward()
        if (i + 1) % k == 0:  # expect: accum-tail-dropped
            optimizer.step()
            optimizer.zero_grad()


def dropped_by_name(model, train_loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for epoch in range(args.epochs):
        optimizer.zero_grad()
        for step, batch in enumerate(train_loader):
            loss = model(**batch).loss / args.gradient_accumulation_steps
            scaler.scale(loss).backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:  # expect: accum-tail-dropped
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()


def last_batch_too(model, train_loader, optimizer, k):
    for i, (x, y) in enumerate(train_loader):
        (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0 or i + 1 == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()


def stepped_after_the_loop(model, train_loader, optimizer, k):
    for i, (x, y) in enumerate(train_loader):
        (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()
    if len(train_loader) % k:
        optimizer.step()
        optimizer.zero_grad()


def counted_over_epochs(model, train_loader, optimizer, k, epochs):
    seen = 0
    for epoch in range(epochs):
        for x, y in train_loader:
            (F.cross_entropy(model(x), y) / k).backward()
            seen += 1
            if seen % k == 0:
                optimizer.step()
                optimizer.zero_grad()


def a_number_of_steps(model, batches, optimizer, k, steps):
    for i in range(steps):
        x, y = next(batches)
        (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()


def logs_now_and_then(model, train_loader, optimizer):
    for i, (x, y) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if (i + 1) % 100 == 0:
            print(loss.item())


def a_multiple_for_sure(model, optimizer, loader, steps):
    assert len(loader) % steps == 0
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / steps).backward()
        if (i + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad()
