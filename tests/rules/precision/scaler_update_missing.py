import torch
from sklearn.preprocessing import StandardScaler
from torch.cuda.amp import GradScaler


def forgotten(model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)  # expect: scaler-update-missing


def train_epoch(model, optimizer, criterion, loader, scaler):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / 4
        scaler.scale(loss).backward()
        if (i + 1) % 4 == 0:
            scaler.step(optimizer)  # expect: scaler-update-missing
            optimizer.zero_grad()


def once_per_epoch(model, optimizer, criterion, loader, scaler):
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            scaler.scale(criterion(model(x), y)).backward()
            scaler.step(optimizer)  # expect: scaler-update-missing
        scaler.update()


class Engine:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)  # expect: scaler-update-missing

    def fit(self, loader):
        for batch in loader:
            self.optimizer.zero_grad()
            self.step(self.model(batch).mean())


def two_optimizers_one_update(generator, critic, opt_g, opt_c, loader):
    scaler = GradScaler()
    for x in loader:
        opt_c.zero_grad()
        scaler.scale(critic(x).mean()).backward()
        scaler.step(opt_c)
        opt_g.zero_grad()
        scaler.scale(-critic(generator(x)).mean()).backward()
        scaler.step(opt_g)
        scaler.update()


def many_optimizers(model, optimizers, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        scaler.scale(criterion(model(x), y)).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()


def behind_two_flags(model, optimizer, criterion, loader, args, scaler=None):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
        else:
            loss.backward()
            optimizer.step()
        if args.amp:
            scaler.update()


def updated_by_helper(engine, model, optimizer, criterion, loader):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(criterion(model(x), y)).backward()
        scaler.step(optimizer)
        engine.after_step(scaler)


def one_step(model, optimizer, loss, scaler):
    scaler.scale(loss).backward()
    scaler.step(optimizer)


def features(train, test):
    scaler = StandardScaler()
    scaler.fit(train)
    return scaler.transform(test)


def critics_in_turn(critics, optimizers, loader, scaler, axes):
    for x, y in loader:
        for axis in axes:
            optimizer = optimizers[axis]
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.float16):
                loss = torch.nn.functional.cross_entropy(critics[axis](x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
        scaler.update()


class WithSettings:
    """A flag that is only switched off under a condition may be on."""

    def __init__(self, args, has_gpu):
        self.args = Settings()
        if not has_gpu:
            self.args.half = False

    def train(self, model, loader, optimizer, criterion):
        scaler = torch.amp.GradScaler()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            if self.args.half:
                scaler.scale(loss).backward()
                scaler.step(optimizer)  # expect: scaler-update-missing
            else:
                loss.backward()
                optimizer.step()


class Settings:
    half: bool = True


def each_network_in_turn(models, optimizers, scaler, x, y):
    for name, optimizer in optimizers.items():
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(models[name](x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
    scaler.update()


def each_trainer_in_turn(trainers, scaler, x, y):
    for trainer in trainers:
        trainer.optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = F.cross_entropy(trainer.model(x), y)
        scaler.scale(loss).backward()
        scaler.step(trainer.optimizer)
    scaler.update()
