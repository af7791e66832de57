import torch
from torch.nn import functional as F


def every_batch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)  # expect: retain-graph-misuse
        optimizer.step()


def with_a_memory(model, chunks, optimizer):
    state = torch.zeros(1, 2, 8)
    for x, y in chunks:
        optimizer.zero_grad()
        output, state = model(x, state)
        F.mse_loss(output, y).backward(retain_graph=True)  # expect: retain-graph-misuse
        optimizer.step()


def scaled(model, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward(retain_graph=True)  # expect: retain-graph-misuse
        scaler.step(optimizer)
        scaler.update()


def each_task(backbone, heads, loader, optimizer):
    for x, targets in loader:
        optimizer.zero_grad()
        features = backbone(x)
        for head, y in zip(heads, targets):
            F.cross_entropy(head(features), y).backward(retain_graph=True)
        optimizer.step()


def adversarial_pair(generator, discriminator, loader, optimizer_g, optimizer_d):
    for real in loader:
        fake = generator(torch.randn(4, 8))
        optimizer_d.zero_grad()
        (discriminator(fake).mean() - discriminator(real).mean()).backward(retain_graph=True)
        optimizer_d.step()
        optimizer_g.zero_grad()
        (-discriminator(fake).mean()).backward()
        optimizer_g.step()


def penalty(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True, create_graph=True)
        optimizer.step()


def gradients_looked_at(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)
        norms = torch.autograd.grad(loss, list(model.parameters()))
        optimizer.step()
        print(norms)


def plain(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward(retain_graph=False)
        optimizer.step()


def once(model, x, y):
    F.cross_entropy(model(x), y).backward(retain_graph=True)
    return [p.grad for p in model.parameters()]


def critic_first(generator, critic, loader, optimizer_g, optimizer_c):
    for real in loader:
        for _ in range(5):
            fake = generator(torch.randn(4, 8))
            optimizer_c.zero_grad()
            (critic(fake).mean() - critic(real).mean()).backward(retain_graph=True)
            optimizer_c.step()
        optimizer_g.zero_grad()
        (-critic(fake).mean()).backward()
        optimizer_g.step()


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))


def second_loop_over_one_network(first_loader, second_loader, log):
    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in first_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    for x, y in second_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)  # expect: retain-graph-misuse
        optimizer.step()
        log.write(loss.detach())


def networks_of_an_unseen_module(pairs, loader, criterion):
    from seq2seq import Reader, Writer

    reader, writer = Reader(pairs.words), Writer(pairs.words)
    optimizers = [torch.optim.Adam(network.parameters()) for network in (reader, writer)]
    for source, target in loader:
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = criterion(writer(reader(source), target), target)
        loss.backward(retain_graph=True)  # expect: retain-graph-misuse
        for optimizer in optimizers:
            optimizer.step()
