"""``trainlint recipe``: lists the reference trainers, shows one, copies one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from trainlint.cli.commands import CommandGroup
from trainlint.cli.faults import UsageFault
from trainlint.cli.terminal import say, wants_colour
from trainlint.config.errors import did_you_mean
from trainlint.recipes import Recipe, installed_recipes


@click.group(cls=CommandGroup, short_help="List, show and copy the reference trainers.")
def recipe() -> None:
    """Reference trainers: one readable file each, to copy into a project. None needs trainlint."""


@recipe.command("list", short_help="List all recipes.")
@click.option(
    "--output-format", type=click.Choice(("text", "json")), default="text", show_default=True
)
def list_recipes(output_format: str) -> None:
    """List all recipes by family, with what each does."""
    recipes = installed_recipes()
    if output_format == "json":
        click.echo(json.dumps([_facts(each) for each in recipes], indent=2))
        return
    width = max((len(each.name) for each in recipes), default=0)
    family = ""
    for each in recipes:
        if each.family != family:
            click.echo(f"{chr(10) if family else ''}{each.family}")
            family = each.family
        click.echo(f"  {each.name:{width}}  {each.summary}")


@recipe.command("show", short_help="Print a recipe.")
@click.argument("name")
def show_recipe(name: str) -> None:
    """Print a recipe's whole program."""
    source = _named(name).source
    if not sys.stdout.isatty():
        click.echo(source, nl=False)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    colours = wants_colour("auto", sys.stdout)
    Console(no_color=not colours).print(Syntax(source, "python", background_color="default"))


@recipe.command("copy", short_help="Copy a recipe into your project.")
@click.argument("name")
@click.argument("destination", default=".", metavar="[DEST]")
def copy_recipe(name: str, destination: str) -> None:
    """Copy a recipe to DEST, a new file or a folder (default: this folder).

    The copy runs on its own. A file that is already there is never overwritten.
    """
    found = _named(name)
    target = Path(destination)
    if target.is_dir() or destination.endswith(("/", "\\")):
        target /= found.path.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(found.source)
    except FileExistsError as error:
        raise UsageFault(f"{error.filename} exists: name another destination") from error
    except OSError as error:
        raise UsageFault(f"cannot write {target}: {error.strerror}") from error
    click.echo(target)
    say(f"needs: pip install {' '.join(found.requires)}")


def _named(name: str) -> Recipe:
    """The recipe of that name; its file's name, with or without the family, will do as well."""
    recipes = {each.name: each for each in installed_recipes()}
    wanted = Path(name).name.removesuffix(".py").replace("_", "-").lower()
    if wanted not in recipes:
        raise UsageFault(
            f"unknown recipe {name!r}{did_you_mean(wanted, recipes)} "
            "(`trainlint recipe list` has them all)"
        )
    return recipes[wanted]


def _facts(recipe: Recipe) -> dict[str, object]:
    return {
        "name": recipe.name,
        "family": recipe.family,
        "file": recipe.file,
        "path": str(recipe.path),
        "summary": recipe.summary,
        "requires": recipe.requires,
    }
