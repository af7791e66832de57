"""What is kept of redirected files, of an earlier run, and of a command line of Python's."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.runtime.launch.following import python_call
from trainlint.runtime.launch.launcher import forget_earlier_run
from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.sandbox.moves import Moves


def test_what_one_process_moves_the_others_find(tmp_path: Path) -> None:
    one, other = Moves(tmp_path / "moved"), Moves(tmp_path / "moved")
    one.add("/data/model.pt", "/run/000-model.pt")
    assert other.find("/data/model.pt") == "/run/000-model.pt"
    other.forget("/data/model.pt")
    assert (one.find("/data/model.pt"), one.find("/data/other.pt")) == (None, None)


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    moves = Moves(tmp_path / "moved")
    (tmp_path / "moved").write_text('["/a", ')
    assert moves.find("/a") is None
    with (tmp_path / "moved").open("a") as stream:
        stream.write('"/run/a"]\n')
    assert moves.find("/a") == "/run/a"


def test_an_earlier_run_in_the_same_folder_is_forgotten(tmp_path: Path) -> None:
    for name in ("trace.observe.0.json", "trace.observe.p1.0.json", "new.fixed.0.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "trace.observe.1.json").touch()
    forget_earlier_run(tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.observe.1.json"]


@pytest.mark.parametrize(
    ("words", "flags", "target", "module", "args"),
    [
        (["train.py", "-x"], [], "train.py", False, ["-x"]),
        (["-u", "-X", "dev", "train.py"], ["-u", "-X", "dev"], "train.py", False, []),
        (["-OO", "-m", "pack.train", "--lr"], ["-OO"], "pack.train", True, ["--lr"]),
    ],
)
def test_scripts_that_python_is_told_to_run(
    words: list[str], flags: list[str], target: str, module: bool, args: list[str]
) -> None:
    found, spec = python_call(words, ChildSpec("old.py", False, [], "/run"))
    assert spec is not None
    assert (found, spec.target, spec.module, spec.args) == (flags, target, module, args)


@pytest.mark.parametrize("words", [[], ["-c", "print()"], ["-"], ["--version"], ["-m"]])
def test_other_calls_of_python_are_not_followed(words: list[str]) -> None:
    assert python_call(words, ChildSpec("old.py", False, [], "/run"))[1] is None
