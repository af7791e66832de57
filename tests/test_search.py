"""Searches through the text of a project's files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.search import Search, holds_identifier, searched_files


@given(st.text("ab_(. é", max_size=12).map(str.encode), st.sampled_from([b"a", b"ab", b"b_"]))
def test_an_identifier_is_found_only_whole(data: bytes, identifier: bytes) -> None:
    letter = rb"[\w\x80-\xff]"
    whole = re.compile(rb"(?<!" + letter + rb")" + identifier + rb"(?!" + letter + rb")")
    assert holds_identifier(data, identifier) == bool(whole.search(data))


@pytest.mark.parametrize(
    ("search", "found"),
    [
        (Search("step"), True),
        (Search("optim"), False),
        (Search("step("), True),
        (Search("step", ("optim", "optimizer")), True),
        (Search("step", ("optim",)), False),
        (Search("backward", ("optimizer",)), False),
    ],
)
def test_a_search_wants_the_text_and_one_of_the_others(search: Search, found: bool) -> None:
    assert search.finds(b"optimizer.step()") is found


def test_large_files_are_not_searched(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("#" * 600_000)
    small = tmp_path / "train.py"
    small.write_text("")
    assert list(searched_files(str(tmp_path))) == [str(small)]
