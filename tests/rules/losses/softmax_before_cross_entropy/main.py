import argparse

import torch.nn as nn
from heads import Head
from nets.build import Plain, build, build_named
from objectives import WeightedLoss
from trainer import PlainTrainer, Trainer


def weighted(loader):
    model, plain = build(10), Plain(10)
    criterion = WeightedLoss()
    for x, y, weight in loader:
        criterion(model(x), y, weight).backward()  # expect: softmax-before-cross-entropy
        criterion(plain(x), y, weight).backward()


def from_settings(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", default="plain")
    args = parser.parse_args()
    args.criterion = nn.CrossEntropyLoss()
    chosen, fixed = build_named(args.net, 3), build_named("squashed", 3)
    for x, y in loader:
        args.criterion(chosen(x), y).backward()
        args.criterion(fixed(x), y).backward()  # expect: softmax-before-cross-entropy


def squashed_by_a_lambda(loader):
    head, plain, criterion = Head(), Plain(10), nn.CrossEntropyLoss()
    for x, y in loader:
        criterion(head.squash(plain(x)), y).backward()  # expect: softmax-before-cross-entropy


def main(loader):
    Trainer(build(10), nn.CrossEntropyLoss(), loader).run()
    PlainTrainer(Plain(10), nn.CrossEntropyLoss(), loader).run()


if __name__ == "__main__":
    main(None)
    weighted(None)
    from_settings(None)
    squashed_by_a_lambda(None)
