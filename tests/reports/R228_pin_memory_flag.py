"""Command line of a training script for molecular graphs."""

import argparse


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--pin_memory", type=bool, default=True)  # expect: argparse-type-bool
    parser.add_argument("--amp", action="store_true")
    return parser.parse_args()
