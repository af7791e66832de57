"""Frozen networks whose statistics move, and such that are really frozen."""

import timm
import torch
from torch import nn
from torchvision import models


def one_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def new_head(loader, epochs: int):
    net = models.resnet50(weights="DEFAULT")
    for parameter in net.parameters():  # expect: frozen-bn-stats-drift
        parameter.requires_grad = False
    net.fc = nn.Linear(2048, 10)
    optimizer = torch.optim.Adam(net.fc.parameters())
    for _ in range(epochs):
        net.train()
        one_epoch(net, loader, optimizer)


def first_stage(loader, epochs: int):
    network = timm.create_model("resnet34", num_classes=10)
    network.layer1.requires_grad_(False)  # expect: frozen-bn-stats-drift
    optimizer = torch.optim.Adam(p for p in network.parameters() if p.requires_grad)
    for _ in range(epochs):
        network.train()
        one_epoch(network, loader, optimizer)


# What is right.


def held_in_eval_mode(loader, epochs: int):
    model = models.resnet50(weights="DEFAULT")
    model.layer1.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(epochs):
        model.train()
        model.layer1.eval()
        one_epoch(model, loader, optimizer)


def without_batch_norm(loader, epochs: int):
    vgg = models.vgg16(weights="DEFAULT")
    for parameter in vgg.features.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.Adam(vgg.classifier.parameters())
    for _ in range(epochs):
        vgg.train()
        one_epoch(vgg, loader, optimizer)


def teacher_and_student(student, loader, epochs: int):
    teacher = models.resnet50(weights="DEFAULT").eval()
    for parameter in teacher.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.Adam(student.parameters())
    for _ in range(epochs):
        student.train()
        for x, _ in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(student(x), teacher(x)).backward()
            optimizer.step()


def frozen_or_fine_tuned(loader, epochs: int, fine_tune: bool):
    net2 = models.resnet50(weights="DEFAULT")
    if not fine_tune:
        net2.requires_grad_(False)
        net2.fc.requires_grad_(True)
    optimizer = torch.optim.SGD(net2.parameters(), lr=0.1)
    for _ in range(epochs):
        if fine_tune:
            net2.train()
        else:
            net2.eval()
        one_epoch(net2, loader, optimizer)
