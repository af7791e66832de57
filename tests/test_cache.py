"""The parts of the cache: documents on disk, the states of files, findings as JSON."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Unprivileged
from trainlint.cache import CacheFolder, FileStates, ResultCache, content_hash
from trainlint.cache.encoding import decode, encode
from trainlint.config import RuleSet
from trainlint.discovery import FileStat
from trainlint.finding import Applicability, Finding, Fix, Severity
from trainlint.outcome import FileOutcome, FileTask

RULES = RuleSet(("TLG001",), frozenset())
LONG_AGO_NS = 1_000_000_000_000_000_000


def status(path: Path) -> FileStat:
    return FileStat.of(path.stat())


def age(path: Path) -> None:
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def test_a_document_comes_back(tmp_path: Path) -> None:
    folder = CacheFolder(str(tmp_path / "cache"))
    assert folder.read("x") is None
    assert folder.write("x", {"a": [1, None, "ä"]})
    assert folder.read("x") == {"a": [1, None, "ä"]}


def test_writers_at_the_same_time_leave_a_whole_document(tmp_path: Path) -> None:
    folder = CacheFolder(str(tmp_path))
    documents = [{"number": number, "filler": [number] * 20_000} for number in range(8)]
    writers = [threading.Thread(target=folder.write, args=("x", each)) for each in documents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert folder.read("x") in documents
    assert [path.name for path in tmp_path.rglob("*.tmp")] == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such modes")
def test_a_read_only_folder_is_no_error(tmp_path: Path, unprivileged: Unprivileged) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with unprivileged():
            assert not CacheFolder(str(tmp_path / "cache")).write("x", {})
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_a_state_that_still_fits_spares_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    age(path)
    states = FileStates({str(path): (3, LONG_AGO_NS, "remembered")})
    assert states.current(str(path)) == "remembered"


@pytest.mark.parametrize("known", [(4, LONG_AGO_NS, "x"), (3, LONG_AGO_NS + 1, "x"), (3, 0, "x")])
def test_another_size_or_time_is_read_again(tmp_path: Path, known: tuple[int, int, str]) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    age(path)
    assert FileStates({str(path): known}).current(str(path)) == content_hash(b"old")


def test_a_file_that_is_not_there_has_no_hash(tmp_path: Path) -> None:
    states = FileStates({})
    assert states.current(str(tmp_path / "gone.py")) is None
    assert states.current(str(tmp_path)) is None


def test_a_fresh_file_is_remembered_without_its_time(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("new")
    state = FileStates({}).to_remember(str(path))
    assert state is not None
    assert state[1] == 0


def answer(path: Path, states: FileStates, consulted: frozenset[str] = frozenset()) -> FileOutcome:
    digest = states.note(str(path), status(path), path.read_bytes())
    return FileOutcome(str(path), content_hash=digest, consulted=consulted)


def lookup(root: Path, folder: Path, path: Path) -> dict[str, FileOutcome]:
    cache = ResultCache(CacheFolder(str(folder)), str(root), "selection", "code")
    task = FileTask(str(path), str(root), path.stat().st_size, RULES)
    return cache.lookup([task], {str(path): status(path)})


def test_an_answer_about_a_file_that_changed_during_the_run_is_dropped(tmp_path: Path) -> None:
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    for each in (path, other):
        each.write_text("x")
        age(each)
    for touched, kept in ((None, 1), (path, 0), (other, 0)):
        folder = tmp_path / f"cache-{touched and touched.name}"
        cache = ResultCache(CacheFolder(str(folder)), str(tmp_path), "selection", "code")
        outcome = answer(path, cache.states, frozenset([str(other)]))
        cache.remember(outcome, RULES)
        if touched is not None:
            touched.write_text("y")
        cache.save()
        if touched is not None:
            touched.write_text("x")
            age(touched)
        assert len(lookup(tmp_path, folder, path)) == kept


def test_an_answer_of_other_code_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")
    age(path)
    old = ResultCache(CacheFolder(str(tmp_path)), str(tmp_path), "selection", "old code")
    old.remember(answer(path, old.states), RULES)
    old.save()
    assert lookup(tmp_path, tmp_path, path) == {}


def test_a_fault_of_ours_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")
    age(path)
    cache = ResultCache(CacheFolder(str(tmp_path)), str(tmp_path), "selection", "code")
    digest = cache.states.note(str(path), status(path), b"x")
    cache.remember(FileOutcome(str(path), (), "failed", True, content_hash=digest), RULES)
    cache.save()
    assert lookup(tmp_path, tmp_path, path) == {}


_LINES = st.integers(min_value=1, max_value=10**6)
_TEXTS = st.text(max_size=20)
_FINDINGS = st.builds(
    Finding,
    path=st.just("a.py"),
    line=_LINES,
    column=_LINES,
    end_line=_LINES,
    end_column=_LINES,
    code=_TEXTS,
    rule=_TEXTS,
    severity=st.sampled_from(Severity),
    message=_TEXTS,
    help=_TEXTS,
    fix=st.none() | st.builds(Fix, st.sampled_from(Applicability), _TEXTS),
    statement_line=_LINES,
    statement_end_line=_LINES,
    cell=st.none() | _LINES,
)


@given(_FINDINGS)
def test_a_finding_survives_being_written(finding: Finding) -> None:
    assert decode("a.py", json.loads(json.dumps(encode(finding)))) == finding
