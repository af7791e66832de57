import torch.nn as nn


def network():
    return nn.Linear(4, 2)
