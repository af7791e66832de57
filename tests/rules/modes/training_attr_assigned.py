import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def forward(self, x):
        return self.layers(x)


def own_network(x):
    network = Network()
    network.training = False  # expect: training-attr-assigned
    return network(x)


def by_name(model, loader):
    model.training = False  # expect: training-attr-assigned
    outputs = [model(x) for x in loader]
    model.training = True  # expect: training-attr-assigned
    return outputs


class Evaluator:
    def __init__(self, model):
        self.model = model

    def run(self, x):
        self.model.training = False  # expect: training-attr-assigned
        return self.model(x)


class Frozen(nn.Module):
    def train(self, mode=True):
        self.training = False
        return self


def for_export(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.training = False
    return model


def settings(args, options, x):
    args.training = True
    options.training = False
    return torch.dropout(x, 0.5, args.training)


def one_layer(x):
    drop = nn.Dropout(0.5)
    drop.training = False
    return drop(x)


def by_flag(model, flag):
    model.training = flag
    return model


class Synchronised:
    def __init__(self, network):
        self.network = network
        self.network = torch.nn.SyncBatchNorm.convert_sync_batchnorm(self.network)

    def evaluate(self, x):
        self.network.training = False  # expect: training-attr-assigned
        return self.network(x)


class Detection:
    def __init__(self, network, loader):
        self.network, self.loader = network, loader

    def score(self):
        self.network.training = False
        self.network.eval()
        return [self.network(x) for x in self.loader]


class Agent:
    def __init__(self):
        self.training = True


def play(agent: Agent, model):
    agent.training = False
    model.training = False  # expect: training-attr-assigned
    return agent


def act(policy, opponent_net):
    policy.training = False
    opponent_net.training = False  # expect: training-attr-assigned
    return policy
