import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_


def after_step(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 5)  # expect: clip-wrong-place


def before_backward(model, criterion, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        nn.utils.clip_grad_value_(model.parameters(), 1.0)  # expect: clip-wrong-place
        loss.backward()
        optimizer.step()


def after_step_and_clear(net, criterion, loader, lr):
    optimizer = torch.optim.SGD(net.parameters(), lr)
    for epoch in range(3):
        for x, y in loader:
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            clip_grad_norm_(net.parameters(), 0.25)  # expect: clip-wrong-place


def in_one_function(model, optimizer, criterion, x, y):
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    if model.clip:
        clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-wrong-place


class Wgan:
    def __init__(self, generator, critic):
        self.generator = generator
        self.critic = critic
        self.opt_g = torch.optim.Adam(self.generator.parameters())
        self.opt_c = torch.optim.Adam(self.critic.parameters())

    def critic_step(self, x):
        self.opt_c.zero_grad()
        self.critic(x).mean().backward()
        self.opt_c.step()
        for p in self.critic.parameters():
            p.data.clamp_(-0.01, 0.01)

    def generator_step(self, z):
        self.opt_g.zero_grad()
        (-self.critic(self.generator(z)).mean()).backward()
        self.opt_g.step()
        clip_grad_norm_(self.generator.parameters(), 1.0)  # expect: clip-wrong-place


def wrong_network(generator, critic, loader):
    opt_g = torch.optim.Adam(generator.parameters())
    opt_c = torch.optim.Adam(critic.parameters())
    for x in loader:
        opt_c.zero_grad()
        critic(generator(x)).mean().backward()
        clip_grad_norm_(generator.parameters(), 1.0)  # expect: clip-wrong-place
        opt_c.step()
        opt_g.zero_grad()
        (-critic(generator(x)).mean()).backward()
        opt_g.step()


def both_clipped(generator, critic, loader):
    opt_g = torch.optim.Adam(generator.parameters())
    opt_c = torch.optim.Adam(critic.parameters())
    for x in loader:
        opt_c.zero_grad()
        opt_g.zero_grad()
        critic(generator(x)).mean().backward()
        clip_grad_norm_(generator.parameters(), 1.0)
        clip_grad_norm_(critic.parameters(), 1.0)
        opt_c.step()
        opt_g.step()


def right(model, criterion, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        clip_grad_norm_(model.parameters(), 5)
        optimizer.step()


def right_with_accumulation(model, criterion, loader, optimizer, steps):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / steps
        loss.backward()
        if (i + 1) % steps == 0:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def step_at_the_top(model, criterion, loader, optimizer):
    previous = None
    for x, y in loader:
        if previous is not None:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        previous = loss


def two_networks(actor, critic, actor_optimizer, critic_optimizer, loader):
    for state in loader:
        critic_optimizer.zero_grad()
        critic(state).mean().backward()
        clip_grad_norm_(critic.parameters(), 1.0)
        critic_optimizer.step()
        clip_grad_norm_(actor.parameters(), 1.0)
        actor_optimizer.step()
        actor_optimizer.zero_grad()


def alternating(actor, critic, loader):
    actor_optimizer = torch.optim.Adam(actor.parameters())
    critic_optimizer = torch.optim.Adam(critic.parameters())
    for state in loader:
        (actor(state) * critic(state)).mean().backward()
        critic_optimizer.step()
        clip_grad_norm_(actor.parameters(), 1.0)
        actor_optimizer.step()
        actor_optimizer.zero_grad()
        critic_optimizer.zero_grad()


def rescaled(model, criterion, loader, optimizer, steps):
    for i, (x, y) in enumerate(loader):
        criterion(model(x), y).backward()
        if (i + 1) % steps == 0:
            for p in model.parameters():
                if p.grad is not None:
                    p.grad *= 1 / steps
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def values(model, optimizer, criterion, loader):
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x).clip(0, 1)
        criterion(output, y).backward()
        optimizer.step()


def hidden_backward(engine, model, optimizer, loader):
    for batch in loader:
        optimizer.zero_grad()
        engine.compute_gradients(model, batch)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def only_clips(model):
    clip_grad_norm_(model.parameters(), 1.0)
