"""Proximal policy optimisation whose losses are computed in numpy."""

import numpy as np
import torch


class Learner:
    def __init__(self, actor, critic, clip=0.2):
        self.actor = actor
        self.critic = critic
        self.clip = clip
        self.actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
        self.critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)

    def update(self, states, actions, old_probabilities, returns):
        values = self.critic(states).detach().numpy()
        advantages = returns - values
        probabilities = self.actor(states).detach().numpy()[np.arange(len(actions)), actions]
        ratio = probabilities / old_probabilities
        clipped = np.clip(ratio, 1 - self.clip, 1 + self.clip)
        act_loss = torch.tensor(-np.minimum(ratio * advantages, clipped * advantages).mean())
        act_loss.requires_grad = True  # expect: loss-requires-grad-hack
        self.actor_optimizer.zero_grad()
        act_loss.backward()
        self.actor_optimizer.step()

        critic_loss = torch.tensor(((returns - values) ** 2).mean())
        critic_loss.requires_grad = True  # expect: loss-requires-grad-hack
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
