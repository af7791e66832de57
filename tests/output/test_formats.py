"""Each format's whole output for one run, held against a file under ``golden/``.

After a wanted change, write the files anew with ``WRITE_GOLDEN=1 pytest tests/output`` and read
the difference.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from trainlint import __version__
from trainlint.output import FORMATS, OutputContext, render, render_statistics

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    text = text.replace(f'"version": "{__version__}"', '"version": "VERSION"')
    file = GOLDEN / name
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("format_name", FORMATS)
def test_findings(format_name: str, sample_run: OutputContext) -> None:
    assert_golden(f"{format_name}.txt", render(format_name, sample_run))


@pytest.mark.parametrize("format_name", FORMATS)
def test_nothing_found(format_name: str, clean_run: OutputContext) -> None:
    assert_golden(f"{format_name}-clean.txt", render(format_name, clean_run))


@pytest.mark.parametrize("format_name", ["full", "concise"])
def test_colours(format_name: str, sample_run: OutputContext) -> None:
    coloured = dataclasses.replace(sample_run, colour=True)
    assert_golden(f"{format_name}-colour.txt", render(format_name, coloured))


def test_statistics_as_a_table(sample_run: OutputContext) -> None:
    assert_golden("statistics.txt", render_statistics(sample_run))


def test_statistics_as_json(sample_run: OutputContext) -> None:
    assert_golden("statistics.json", render_statistics(sample_run, as_json=True))


def test_unknown_format(clean_run: OutputContext) -> None:
    with pytest.raises(KeyError):
        render("xml", clean_run)
