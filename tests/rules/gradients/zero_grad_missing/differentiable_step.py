"""An optimizer that differentiates the loss it is given leaves `.grad` alone."""

import higher
import torch
from torch.nn import functional as F


def reweighted(model, loader, held_out, optimizer):
    for x, y in loader:
        with higher.innerloop_ctx(model, optimizer) as (inner_model, inner_optimizer):
            losses = F.cross_entropy(inner_model(x), y, reduction="none")
            weights = torch.zeros_like(losses, requires_grad=True)
            inner_loss = (weights * losses).sum()
            inner_optimizer.step(inner_loss)
            held_x, held_y = next(held_out)
            outer_loss = F.cross_entropy(inner_model(held_x), held_y)
            gradients = torch.autograd.grad(outer_loss, weights)[0].detach()
        weights = torch.clamp(-gradients, min=0)
        loss = (weights * F.cross_entropy(model(x), y, reduction="none")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def plain(model, loader, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: zero-grad-missing
        optimizer.step()
