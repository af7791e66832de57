"""The table of marked bugs, on a corpus of two files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import gold

_MARKS = """repository\tcommit\tpath\tlabel\trule\tlines
a/b\t0123\ttrain.py\tbug\teval-missing\t6
a/b\t0123\ttrain.py\tbug\tzero-grad-missing\t6
a/b\t0123\ttrain.py\ttricky\t*\t{tricky}
"""
_SCRIPT = """import torch

def validate(model, val_loader):
    with torch.no_grad():
        for x, y in val_loader:
            print(model(x), y)
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "a+b").mkdir()
    (tmp_path / "a+b" / "train.py").write_text(_SCRIPT)
    return tmp_path


def run(corpus: Path, tricky: int, *options: str) -> int:
    table = corpus / "gold.tsv"
    table.write_text(_MARKS.format(tricky=tricky))
    with pytest.raises(SystemExit) as ended:
        gold.main(["--corpus", str(corpus), *options], table)
    return int(str(ended.value.code))


def test_bugs_found_and_missed(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(corpus, tricky=1) == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].split() == ["eval-missing", "1/1", "0/0", "0/0"]
    assert "missed: 1\n  a/b train.py:6 zero-grad-missing" in printed
    assert "tricky lines hit: 0" in printed


def test_a_bug_is_no_tricky_line_of_its_own_rule(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(corpus, tricky=6)
    assert "tricky lines hit: 0" in capsys.readouterr().out


def test_files_that_are_not_there(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpus / "a+b" / "train.py").unlink()
    assert run(corpus, tricky=1) == 2
    assert "--how-to-fetch | sh" in capsys.readouterr().err


def test_how_to_fetch() -> None:
    marks = list(gold.read(gold.GOLD))
    commands = list(gold.how_to_fetch(marks, Path("corpus")))
    assert sum(command.startswith("#") for command in commands) == 65
    assert all(len(mark.commit) == 40 for mark in marks)
