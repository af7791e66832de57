import torch
from torch import nn
from torch.nn import functional as F

criterion = nn.MSELoss()


def classes_as_numbers(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).argmax(1).float(), y.float())  # expect: argmax-before-loss
        loss.backward()
        optimizer.step()


def indices_of_the_maximum(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        scores = model(x)
        _, predicted = torch.max(scores, 1)
        loss = F.l1_loss(predicted.float(), y.float())  # expect: argmax-before-loss
        loss.requires_grad_(True)
        loss.backward()
        optimizer.step()


def thresholded(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        mask = (torch.sigmoid(model(x)) > 0.5).float()
        extra = F.binary_cross_entropy(mask, y)  # expect: argmax-before-loss
        loss = F.mse_loss(model(x), y) + extra
        loss.backward()
        optimizer.step()


def consistency_loss(fine, coarse):
    hard = F.one_hot(fine.argmax(1), 10).float()
    return F.mse_loss(hard, coarse)  # expect: argmax-before-loss


def counted_only(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        loss.backward()
        optimizer.step()
        print((scores.argmax(1) == y).float().mean(), F.mse_loss(scores.argmax(1).float(), y.float()))


def pseudo_labels(student, teacher, loader, optimizer):
    for x, _ in loader:
        optimizer.zero_grad()
        label = teacher(x).argmax(1)
        loss = F.cross_entropy(student(x), label)
        loss.backward()
        optimizer.step()


def chosen_rows(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        values = model(x)
        action = values.argmax(1, keepdim=True)
        loss = F.mse_loss(values.gather(1, action), y)
        loss.backward()
        optimizer.step()


def largest_value(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        best = model(x).max(1)[0]
        loss = F.mse_loss(best, y)
        loss.backward()
        optimizer.step()


def straight_through(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        soft = model(x).softmax(1)
        hard = F.one_hot(soft.argmax(1), 10).float()
        loss = F.mse_loss(hard + soft - soft.detach(), y)
        loss.backward()
        optimizer.step()


def reassigned(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        prediction = model(x).argmax(1)
        print(prediction)
        prediction = model(x)
        loss = F.cross_entropy(prediction, y)
        loss.backward()
        optimizer.step()


def disagreement_of_hard_labels(model, loader, optimizer, parents):
    for x, y in loader:
        coarse, fine = model(x)
        wrong = (parents[torch.argmax(fine, dim=1)] != torch.argmax(coarse, dim=1)).float()
        loss = F.mse_loss(wrong, torch.zeros_like(wrong))  # expect: argmax-before-loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
