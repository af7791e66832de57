import torch
from torch import nn, optim
from torch.nn import functional as F


def in_the_epoch_loop(model, loader, epochs):
    for epoch in range(epochs):
        optimizer = optim.Adam(model.parameters(), lr=1e-3)  # expect: optimizer-recreated-in-loop
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def train_once(model, loader, name):
    if name == "adam":
        optimizer = torch.optim.Adam(model.parameters())  # expect: optimizer-recreated-in-loop
    else:
        optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)  # expect: optimizer-recreated-in-loop
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def main(loader, name):
    model = nn.Linear(3, 3)
    for epoch in range(10):
        train_once(model, loader, name)


def once_before(model, loader, epochs):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def plain_descent(model, loader, epochs, lr):
    for epoch in range(epochs):
        optimizer = optim.SGD(model.parameters(), lr=lr * 0.9**epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def for_each_fold(folds, epochs):
    for fold in folds:
        model = nn.Linear(3, 3)
        optimizer = optim.Adam(model.parameters())
        for epoch in range(epochs):
            for x, y in fold:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()


def for_each_task(model, tasks):
    for task in tasks:
        optimizer = optim.Adam(model.parameters())
        for epoch in range(3):
            for x, y in task:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()


def fresh_model_each_epoch(loader, epochs):
    for epoch in range(epochs):
        model = nn.Linear(3, 3)
        optimizer = optim.Adam(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def after_unfreezing(model, loader, epochs):
    optimizer = optim.Adam(model.head.parameters())
    for epoch in range(epochs):
        if epoch == 3:
            optimizer = optim.Adam(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def newton(model, x, y, epochs):
    for epoch in range(epochs):
        optimizer = optim.LBFGS(model.parameters())

        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def at_the_end_of_the_epoch(model, loader, epochs, lr):
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        lr = lr * 0.9
        optimizer = optim.SGD(  # expect: optimizer-recreated-in-loop
            model.parameters(), lr=lr, momentum=0.9
        )


def beside_a_score_that_is_reset(model, train_loader, score, best_weights, epochs):
    for epoch in range(epochs):
        optimizer = torch.optim.Adam(model.parameters())  # expect: optimizer-recreated-in-loop
        score.reset()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    model.load_state_dict(best_weights)


def after_the_model_is_reset(model, train_loader, epochs):
    for epoch in range(epochs):
        model.reset()
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


def each_episode_from_the_same_weights(model, pretrained, episodes, epochs):
    for support in episodes:
        model.load_state_dict(pretrained)
        head = nn.Linear(3, 5)
        for epoch in range(epochs):
            optimizer = optim.SGD(  # expect: optimizer-recreated-in-loop
                [{"params": model.parameters()}, {"params": head.parameters()}], 0.01, momentum=0.9
            )
            for x, y in support:
                optimizer.zero_grad()
                F.cross_entropy(head(model(x)), y).backward()
                optimizer.step()


def once_for_each_episode(model, pretrained, episodes, epochs):
    for support in episodes:
        model.load_state_dict(pretrained)
        optimizer = optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for epoch in range(epochs):
            for x, y in support:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()


def one_for_each_listed_stage(model, train_loader):
    for epochs, lr in [(10, 1e-3), (5, 1e-4)]:
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        for _ in range(epochs):
            for x, y in train_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()


def counted_epochs(model, train_loader):
    for epoch in list(range(10)):
        optimizer = torch.optim.Adam(model.parameters())  # expect: optimizer-recreated-in-loop
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def try_schedule(model, batch, epochs_to_try):
    for epoch in epochs_to_try:
        F.cross_entropy(model(batch[0]), batch[1] + epoch).backward()
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.step()
        model.zero_grad()


def smoke(model, batch):
    try_schedule(model, batch, [1])
    try_schedule(model, batch, [1, 20])
