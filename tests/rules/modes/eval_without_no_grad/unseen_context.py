"""Context managers from modules that are not there: they may switch gradients off."""

from lab.helpers import evaluation_mode, fp16
from lab.utils import *


def evaluate(model, val_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct


def validate(model, val_loader):
    correct = 0
    with evaluation_mode(model):
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct


def validate_in_half_precision(model, val_loader):
    model.eval()
    correct = 0
    with fp16():
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()  # expect: eval-without-no-grad
    return correct
