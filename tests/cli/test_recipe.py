"""``trainlint recipe``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainlint.cli import command_line
from trainlint.recipes import installed_recipes

TRAINERS = Path(__file__).parents[2] / "reference_trainers"


def recipe(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command_line, ["recipe", *map(str, arguments)])


def test_every_trainer_is_a_recipe_of_its_own_name() -> None:
    files = {path.relative_to(TRAINERS).as_posix() for path in TRAINERS.glob("*/[!_]*.py")}
    assert {each.file for each in installed_recipes()} == files
    assert len({each.name for each in installed_recipes()}) == len(files)


def test_list_names_each_recipe_and_what_it_does() -> None:
    lines = recipe("list").stdout.splitlines()
    assert "language" in lines
    gpt = next(line for line in lines if line.split()[:1] == ["gpt"])
    assert "Pretrain a GPT" in gpt


def test_list_as_json() -> None:
    facts = {
        each["name"]: each for each in json.loads(recipe("list", "--output-format=json").stdout)
    }
    assert facts["flow-matching"] == {
        "name": "flow-matching",
        "family": "diffusion",
        "file": "diffusion/flow_matching.py",
        "path": str(TRAINERS / "diffusion" / "flow_matching.py"),
        "summary": (
            "Train a generator by flow matching: a small diffusion transformer and straight paths."
        ),
        "requires": ["numpy", "scikit-learn", "torch", "torchvision"],
    }
    assert facts["shards"]["requires"] == [
        "numpy",
        "pillow",
        "scikit-learn",
        "torch",
        "torchvision",
        "webdataset",
    ]


@pytest.mark.parametrize(
    "name", ["mixed-precision", "mixed_precision", "memory/mixed_precision.py"]
)
def test_show_prints_the_program(name: str) -> None:
    program = (TRAINERS / "memory" / "mixed_precision.py").read_text("utf-8")
    assert recipe("show", name).stdout == program


@pytest.mark.parametrize("verb", ["show", "copy"])
def test_an_unknown_recipe_is_2_and_the_nearest_is_named(verb: str) -> None:
    result = recipe(verb, "resnte")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: unknown recipe 'resnte'; did you mean 'resnet'? "
        "(`trainlint recipe list` has them all)\n"
    )


def test_copy_goes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (TRAINERS / "fine_tuning" / "lora.py").read_bytes()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for arguments, expected in [
        (["lora"], "lora.py"),
        (["lora", "folder"], "folder/lora.py"),
        (["lora", "new/"], "new/lora.py"),
        (["lora", "deep/down/adapt.py"], "deep/down/adapt.py"),
    ]:
        result = recipe("copy", *arguments)
        assert result.exit_code == 0, result.stderr
        assert Path(result.stdout.strip()) == Path(expected)
        assert result.stderr == "needs: pip install numpy scikit-learn torch torchvision\n"
        assert (tmp_path / expected).read_bytes() == program


def test_copy_overwrites_nothing(tmp_path: Path) -> None:
    mine = tmp_path / "lora.py"
    mine.write_text("mine")
    for destination in (mine, tmp_path, mine / "below.py"):
        result = recipe("copy", "lora", destination)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert str(mine) in result.stderr
    assert mine.read_text() == "mine"


@pytest.mark.slow
def test_a_copy_runs_on_its_own(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    assert recipe("copy", "lora", tmp_path).exit_code == 0
    done = subprocess.run(
        # -I: neither this checkout nor PYTHONPATH can help it
        [sys.executable, "-I", "lora.py", "--steps=1", "--device=cpu", "--out=runs"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "val_accuracy:" in done.stdout


@pytest.mark.parametrize(
    ("name", "answer"),
    [("lst", "did you mean 'list'?"), ("gpt", "the commands are copy, list, show")],
)
def test_a_mistyped_command(name: str, answer: str) -> None:
    result = recipe(name)
    assert result.exit_code == 2
    assert result.stderr == f"Error: no such command: {name!r}; {answer}\n"
