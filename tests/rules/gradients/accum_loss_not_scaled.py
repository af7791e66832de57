import torch
from torch.nn import functional as F


def not_divided(model, loader, accum_steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: accum-loss-not-scaled
        if (i + 1) % accum_steps == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def sixteen_at_a_time(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()  # expect: accum-loss-not-scaled
        if (i + 1) % 16 == 0 or i + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def divided(model, loader, k):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y) / k
        loss.backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def divided_in_place(model, loader, chunks):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss /= chunks
        loss.backward()
        if (i + 1) % chunks == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def gradients_divided(model, loader, parts):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        F.cross_entropy(model(x), y).backward()
        if (i + 1) % parts == 0 or i + 1 == len(loader):
            for p in model.parameters():
                p.grad /= parts
            optimizer.step()
            optimizer.zero_grad()


def learning_rate_divided(model, loader, lr, pieces):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr / pieces)
    for i, (x, y) in enumerate(loader):
        F.cross_entropy(model(x), y).backward()
        if (i + 1) % pieces == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def by_the_tokens(model, loader, tokens, micro):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = model(x).logsumexp(1).sum() / tokens
        loss.backward()
        if (i + 1) % micro == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def accelerated(model, loader, accelerator, every):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        accelerator.backward(F.cross_entropy(model(x), y))
        if (i + 1) % every == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()


def plain(model, loader, log_interval):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if i % log_interval == 0:
            print(loss.item())


def gradients_scaled_by_the_tokens(model, loader, micro):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens = 0
    for i, (x, y) in enumerate(loader):
        tokens += x.numel()
        loss = F.cross_entropy(model(x), y) * x.numel()
        loss.backward()
        if (i + 1) % micro == 0 or i + 1 == len(loader):
            training.scale_grads(model, 1 / tokens)
            optimizer.step()
            optimizer.zero_grad()
            tokens = 0


class TwoOptimizersOneAccumulates:
    """The temperature is updated on every lap; only the policy's gradients add up."""

    def optimize(self, batches, accumulation_steps):
        for i, (x, y) in enumerate(batches):
            alpha_loss = -(self.log_alpha * self.policy(x).detach()).mean()
            alpha_loss.backward()
            self.alpha_optimizer.step()
            self.alpha_optimizer.zero_grad()

            loss = F.cross_entropy(self.policy(x), y)
            loss.backward()  # expect: accum-loss-not-scaled
            if (i + 1) % accumulation_steps == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()

    def optimize_in_parts(self, batches, parts):
        for i, (x, y) in enumerate(batches):
            alpha_loss = -(self.log_alpha * self.policy(x).detach()).mean()
            alpha_loss.backward()
            self.alpha_optimizer.step()
            self.alpha_optimizer.zero_grad()

            loss = F.cross_entropy(self.policy(x), y) / parts
            loss.backward()
            if (i + 1) % parts == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


def micro_loop(model, get_batch, accum_steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        optimizer.zero_grad()
        for micro_step in range(accum_steps):
            x, y = get_batch()
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # expect: accum-loss-not-scaled
        optimizer.step()


def micro_loop_by_name_alone(model, get_batch, repeats):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        optimizer.zero_grad()
        for part in range(repeats):
            x, y = get_batch(part)
            F.cross_entropy(model(x), y).backward()
        optimizer.step()
