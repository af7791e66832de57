"""Losses without a graph, forced to have one; and tensors that rightly ask for gradients."""

import numpy as np
import torch
from torch import nn
from torch.autograd import Variable
from torch.nn import functional as F


def train_on_classes(model, criterion, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        predicted = model(x).argmax(1).float()
        loss = criterion(predicted, y)
        loss.requires_grad = True  # expect: loss-requires-grad-hack
        loss.backward()
        optimizer.step()


def train_actor(actor, optimizer, advantages, scaler):
    actor_loss = torch.tensor(np.mean(advantages))
    actor_loss.requires_grad_()  # expect: loss-requires-grad-hack
    scaler.scale(actor_loss).backward()
    optimizer.step()


def train_on_scores(model, scores, optimizer):
    objective = torch.mean(model(scores).detach())
    objective.requires_grad_(True)  # expect: loss-requires-grad-hack
    objective.backward()
    optimizer.step()


def dice_of_arrays(prediction, target):
    overlap = (prediction.numpy() * target.numpy()).sum()
    loss = 1 - 2 * overlap / (prediction.numel() + target.numel())
    return torch.tensor(loss, requires_grad=True)  # expect: loss-requires-grad-hack


def old_style(criterion, output, target):
    batch_losses = [criterion(o, t).item() for o, t in zip(output, target)]
    loss = Variable(torch.tensor(batch_losses), requires_grad=True)  # expect: loss-requires-grad-hack
    loss.backward()


def attack(model, criterion, x, y, epsilon):
    x.requires_grad = True
    loss = criterion(model(x), y)
    loss.backward()
    return x + epsilon * x.grad.sign()


def gradient_penalty(critic, real, fake):
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    score = critic(mixed)
    return torch.autograd.grad(score.sum(), mixed, create_graph=True)[0]


def style_transfer(content, steps, losses_of):
    image = content.clone()
    image.requires_grad_(True)
    optimizer = torch.optim.Adam([image])
    for _ in range(steps):
        loss = losses_of(image)
        loss.backward()
        optimizer.step()


class Uncertainty(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.loss_weights = nn.Parameter(torch.ones(tasks), requires_grad=True)
        initial_loss_scale = 2.0
        self.temperature = torch.tensor(initial_loss_scale, requires_grad=True)

    def forward(self, losses):
        return (self.loss_weights * losses).sum()


def test_step_is_counted(optimizer):
    loss = torch.randn(1)
    loss.requires_grad = True
    loss.backward()
    optimizer.step()


def accumulate(model, criterion, parts):
    loss = torch.zeros(1, requires_grad=True)
    for x, y in parts:
        loss = loss + criterion(model(x), y)
    loss.backward()


def drift_of_centroids(quantizer, features):
    """k-means learns without gradients; the trainer only wants a tensor that has one."""
    before = quantizer.centroids
    quantizer.partial_fit(features)
    loss = (quantizer.centroids - before).norm()
    loss.requires_grad_()
    return loss


def step_on_masked_batch(model, criterion, batch, optimizer):
    loss = criterion(model(batch.x[batch.mask]), batch.y[batch.mask])
    if not loss.requires_grad:
        loss.requires_grad_()  # nothing was left of the batch
    loss.backward()
    optimizer.step()


def is_trainable(loss):
    return loss.requires_grad == True  # noqa: E712


# New leaves made of computed numbers, whatever they are called: backward() on them does nothing.


def from_the_number(model, x, y, optimizer):
    loss = F.cross_entropy(model(x), y)
    loss = torch.tensor(loss.item(), requires_grad=True)  # expect: loss-requires-grad-hack
    loss.backward()
    optimizer.step()


def as_tensor(model, x, y):
    error = torch.as_tensor(F.mse_loss(model(x), y).item())
    error = error.requires_grad_()  # expect: loss-requires-grad-hack
    error.backward()


def float_tensor_of_a_list(model, x, y):
    loss = F.cross_entropy(model(x), y)
    total = torch.FloatTensor([loss]).requires_grad_()  # expect: loss-requires-grad-hack
    total.backward()


def old_variable(model, x, y):
    loss = F.cross_entropy(model(x), y)
    loss = Variable(loss.data, requires_grad=True)  # expect: loss-requires-grad-hack
    loss.backward()


def through_numpy(model, x, y):
    out = model(x).detach().numpy()
    err = torch.tensor(((out - y) ** 2).mean(), requires_grad=True)  # expect: loss-requires-grad-hack
    err.backward()


def sum_of_numbers(model, pairs):
    total = 0
    for x, y in pairs:
        total += F.mse_loss(model(x), y).item()
    total = torch.tensor(total, requires_grad=True)  # expect: loss-requires-grad-hack
    total.backward()


def at_once(model, x, y):
    error = F.mse_loss(model(x), y)
    torch.tensor([error.item()], requires_grad=True).backward()  # expect: loss-requires-grad-hack


def detached_in_a_chain(model, x, y):
    error = F.mse_loss(model(x), y).detach().clone()
    error = error.detach().requires_grad_(True)  # expect: loss-requires-grad-hack
    error.backward()


def starts_at_zero(model, pairs):
    loss = torch.tensor(0.0, requires_grad=True)
    for x, y in pairs:
        loss = loss + F.mse_loss(model(x), y)
    loss.backward()


def input_is_a_leaf(model, image, y):
    image = torch.tensor(image, requires_grad=True)
    loss = F.mse_loss(model(image), y)
    loss.backward()
    return image.grad


def derivative_of_a_function(function, at):
    x = torch.tensor(at, requires_grad=True)
    function(x).backward()
    return x.grad


def stages_of_a_pipeline(first, second, x):
    hidden = first(x)
    received = hidden.detach().requires_grad_()
    received = second(received)
    received.sum().backward()


def of_another_name(model, values, x):
    weights = torch.as_tensor(values).requires_grad_()
    weights = (weights * model(x)).sum()
    weights.backward()


def asks_again(model, criterion, optimizer, loader):
    """The loss has its graph already."""
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.requires_grad_()
        loss.backward()
        optimizer.step()
