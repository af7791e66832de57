"""Command lines of training scripts: options that are meant to be true or false."""

import argparse
from argparse import ArgumentParser

import click
import jsonargparse


def str2bool(text):
    if text.lower() in ("yes", "true", "1"):
        return True
    if text.lower() in ("no", "false", "0"):
        return False
    raise argparse.ArgumentTypeError(f"not a truth value: {text}")


def arguments_of_pretraining():
    parser = argparse.ArgumentParser(description="masked language modelling")
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--amp", type=bool, default=True)  # expect: argparse-type-bool
    parser.add_argument("-p", "--pin_memory", default=False, type=bool)  # expect: argparse-type-bool
    parser.add_argument(
        "--pretrained",
        type=bool,  # expect: argparse-type-bool
        default=True,
        help="start from the weights of the last release",
    )
    optimisation = parser.add_argument_group("optimisation")
    optimisation.add_argument("--nesterov", type=bool)  # expect: argparse-type-bool
    optimisation.add_argument("--ema", type=str2bool, default=False)
    optimisation.add_argument("--compile", action="store_true")
    optimisation.add_argument("--fused", action=argparse.BooleanOptionalAction, default=True)
    optimisation.add_argument("--foreach", type=lambda text: text == "true")
    optimisation.add_argument("--epochs", type=int, help="type=bool would be wrong here")
    return parser.parse_args()


def add_model_arguments(parent):
    parser = ArgumentParser(parents=[parent], add_help=False)
    parser.add_argument("--tie_weights", nargs="?", const=True, type=bool)  # expect: argparse-type-bool
    return parser


def add_arguments_to(parser):
    parser.add_argument("--shuffle", type=bool, default=True)  # expect: argparse-type-bool


class ReadingParser(argparse.ArgumentParser):
    """Takes the types of plain Python at their word."""

    def add_argument(self, *names, type=None, **options):
        return super().add_argument(*names, type=str2bool if type is bool else type, **options)


def arguments_of_evaluation():
    parser = ReadingParser()
    parser.add_argument("--flip", type=bool, default=False)
    return parser.parse_args()


def arguments_of_search():
    parser = jsonargparse.ArgumentParser()
    parser.add_argument("--early_stop", type=bool, default=True)
    return parser.parse_args()


@click.command()
@click.option("--mirror", type=bool, default=False)
def generate(mirror):
    return mirror


def local_type(bool):
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", type=bool)
    return parser


def with_an_action():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", type=bool, default=True, action=argparse.BooleanOptionalAction)
    parser.add_argument("--ema", type=bool, default=True, action="store")  # expect: argparse-type-bool
    return parser
