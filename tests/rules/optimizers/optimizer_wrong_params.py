import itertools

import torch
from torch import nn, optim


def pair(netG, netD, lr):
    optimizerD = optim.Adam(netD.parameters(), lr=lr)
    optimizerG = optim.Adam(netD.parameters(), lr=lr)  # expect: optimizer-wrong-params
    return optimizerG, optimizerD


class ActorCritic:
    def __init__(self, actor, critic):
        self.actor = actor
        self.critic = critic
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-4)
        self.critic_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)  # expect: optimizer-wrong-params


def joined(encoder, decoder):
    return torch.optim.Adam(list(encoder.parameters()) + list(encoder.parameters()))  # expect: optimizer-wrong-params


def chained(first, second):
    return torch.optim.Adam(itertools.chain(first.parameters(), first.parameters()))  # expect: optimizer-wrong-params


def resume(g_optimizer, d_optimizer, path):
    checkpoint = torch.load(path)
    g_optimizer.load_state_dict(checkpoint["g_optimizer"])
    g_optimizer.load_state_dict(checkpoint["d_optimizer"])  # expect: optimizer-wrong-params


def right(netG, netD, encoder, decoder):
    optimizerD = optim.Adam(netD.parameters())
    optimizerG = optim.Adam(netG.parameters())
    both = optim.Adam(list(encoder.parameters()) + list(decoder.parameters()))
    return optimizerG, optimizerD, both


def two_on_one(model, loss_names):
    main_optimizer = optim.SGD(model.parameters(), lr=0.1)
    slow_optimizer = optim.SGD(model.parameters(), lr=0.001)
    sparse = optim.SparseAdam(model.embedding.parameters())
    return main_optimizer, slow_optimizer, sparse


def shared_network(policy, discriminator):
    policy_optimizer = optim.Adam(policy.parameters())
    policy_finetune_optimizer = optim.Adam(policy.parameters(), lr=1e-5)
    discriminator_optimizer = optim.Adam(discriminator.parameters())
    return policy_optimizer, policy_finetune_optimizer, discriminator_optimizer


def resume_right(g_optimizer, d_optimizer, path):
    checkpoint = torch.load(path)
    g_optimizer.load_state_dict(checkpoint["g_optimizer"])
    d_optimizer.load_state_dict(checkpoint["d_optimizer"])


def resume_either(optimizer, path, old):
    checkpoint = torch.load(path)
    if old:
        optimizer.load_state_dict(checkpoint["optim"])
    else:
        optimizer.load_state_dict(checkpoint["optimizer"])


def layers():
    return nn.Linear(2, 2)


def short_names(G, D):
    og = optim.Adam(G.parameters(), lr=2e-4)
    od = optim.Adam(G.parameters(), lr=2e-4)  # expect: optimizer-wrong-params
    return og, od


def short_names_right(G, D):
    og = optim.Adam(G.parameters(), lr=2e-4)
    od = optim.Adam(D.parameters(), lr=2e-4)
    return og, od
