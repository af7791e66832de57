import torch


def evaluate(model, val_loader):
    model.eval()
    torch.set_grad_enabled(False)  # expect: grad-disabled-globally
    return [model(x).argmax(1) for x, _ in val_loader]


def careful(model, val_loader):
    model.eval()
    torch.set_grad_enabled(False)
    found = [model(x).argmax(1) for x, _ in val_loader]
    torch.set_grad_enabled(True)
    return found


@torch.no_grad()
def inside_a_scope(model, val_loader):
    """The decorator puts back what was before."""
    torch.set_grad_enabled(False)
    return [model(x).argmax(1) for x, _ in val_loader]


def at_the_end(model, val_loader):
    torch.set_grad_enabled(False)
    return [model(x).argmax(1) for x, _ in val_loader]


def one_epoch(model, train_loader, optimizer, criterion):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


def main(model, train_loader, val_loader, optimizer, criterion):
    for epoch in range(3):
        one_epoch(model, train_loader, optimizer, criterion)
        print(epoch, evaluate(model, val_loader))


def other(model, train_loader, val_loader, optimizer, criterion):
    for epoch in range(3):
        one_epoch(model, train_loader, optimizer, criterion)
        print(epoch, careful(model, val_loader), inside_a_scope(model, val_loader))
    print(at_the_end(model, val_loader))


if __name__ == "__main__":
    main(None, [], [], None, None)
