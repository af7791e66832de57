"""The editor snippet for freezing a pretrained network."""

import torchvision
from torch import nn


def frozen_backbone(classes):
    model = torchvision.models.resnet18(weights="DEFAULT")
    for param in model.parameters():
        param.require_grad = False  # expect: requires-grad-typo
    model.fc = nn.Linear(model.fc.in_features, classes)
    return model
