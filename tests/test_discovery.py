"""Which files a run checks, and what is said of those that cannot be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Unprivileged
from trainlint.config import Options, SettingsResolver
from trainlint.discovery import Discovery, discover

Find = Callable[..., Discovery]

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Discover from ``tmp_path``."""

    def run(*paths: str, **options: Any) -> Discovery:
        command_line = Options("the command line", **options)
        resolver = SettingsResolver(command_line, str(tmp_path), lambda _: ())
        return discover(paths or (".",), resolver, str(tmp_path))

    return run


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def names(found: Discovery, root: Path) -> list[str]:
    return sorted(os.path.relpath(path, root) for path in found.files)


def test_scripts_and_notebooks_of_all_folders(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b/c.ipynb", "b/d/e.py", "f.pyi", "g.txt", "py", ".hidden/h.py")
    assert names(find(), tmp_path) == [".hidden/h.py", "a.py", "b/c.ipynb", "b/d/e.py"]


def test_the_default_excludes(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "a.py", ".venv/b.py", "node_modules/c.py", "x/dist/d.py", "x/.git/e.py")
    assert names(find(), tmp_path) == ["a.py"]


def test_exclude_replaces_the_defaults_and_extend_exclude_adds(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "a.py", "venv/b.py", "old/c.py", "gen/d.py")
    assert names(find(exclude=("old",)), tmp_path) == ["a.py", "gen/d.py", "venv/b.py"]
    assert names(find(extend_exclude=("old", "gen/*.py")), tmp_path) == ["a.py"]


def test_patterns_of_a_file_start_at_its_folder(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "inner/gen/a.py", "gen/b.py", "inner/c.py")
    (tmp_path / "inner/trainlint.toml").write_text('extend-exclude = ["/gen/*.py"]\n')
    assert names(find(), tmp_path) == ["gen/b.py", "inner/c.py"]


def test_a_named_file_is_checked_even_if_excluded(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "venv/a.py", "b.txt")
    assert names(find("venv/a.py", "b.txt"), tmp_path) == ["b.txt", "venv/a.py"]


def test_force_exclude(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "venv/x/a.py", "b.py", "gen/c.py", "gen/d/e.py")
    found = find(
        "venv/x/a.py", "venv", "b.py", "gen/d", force_exclude=True, extend_exclude=("gen/d",)
    )
    assert names(found, tmp_path) == ["b.py"]


@pytest.mark.parametrize("pattern", ["old", "old/", "/old", "ol*"])
def test_a_named_folder_is_walked_even_if_excluded(
    find: Find, tmp_path: Path, pattern: str
) -> None:
    make(tmp_path, "old/a.py", "old/b_gen.py", "c.py")
    found = find("old", extend_exclude=(pattern, "*_gen.py"))
    assert names(found, tmp_path) == ["old/a.py"]


def test_gitignore_with_nested_files_and_negation(find: Find, tmp_path: Path) -> None:
    make(
        tmp_path,
        "a.py",
        "b_gen.py",
        "x/c_gen.py",
        "x/keep_gen.py",
        "x/y/d.py",
        "x/y/e.py",
        "z/f.py",
    )
    (tmp_path / ".gitignore").write_text("# generated\n*_gen.py\n/z\n")
    (tmp_path / "x/.gitignore").write_text("!keep_gen.py\ny/d.py\n")
    assert names(find(), tmp_path) == ["a.py", "x/keep_gen.py", "x/y/e.py"]


def test_what_git_ignores_does_not_depend_on_where_the_walk_starts(
    find: Find, tmp_path: Path
) -> None:
    make(tmp_path, ".git/HEAD", "x/a.py", "x/b_gen.py", "x/y/c_gen.py", "x/y/d.py")
    (tmp_path / ".gitignore").write_text("*_gen.py\n")
    everything = names(find(), tmp_path)
    assert names(find("x"), tmp_path) == everything == ["x/a.py", "x/y/d.py"]
    assert names(find("x/y"), tmp_path) == ["x/y/d.py"]


def test_a_repository_inside_the_repository_has_its_own_rules(find: Find, tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", "inner/.git/HEAD", "inner/a.py", "inner/b.py", "a.py")
    (tmp_path / ".gitignore").write_text("a.py\n")
    (tmp_path / "inner/.gitignore").write_text("b.py\n")
    assert names(find(), tmp_path) == ["inner/a.py"]


def test_git_info_exclude(find: Find, tmp_path: Path) -> None:
    make(tmp_path, ".git/info/exclude", "a.py", "b.py")
    (tmp_path / ".git/info/exclude").write_text("b.py\n")
    assert names(find(), tmp_path) == ["a.py"]


def test_an_ignored_folder_that_is_named_is_walked(find: Find, tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", "build/a.py", "build/b.log.py")
    (tmp_path / ".gitignore").write_text("build/\n*.log.py\n")
    assert names(find(), tmp_path) == []
    assert names(find("build"), tmp_path) == ["build/a.py"]
    assert names(find("build/b.log.py"), tmp_path) == ["build/b.log.py"]


def test_a_stray_ignore_file_above_the_project_says_nothing(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "project/setup.py", "project/pkg/a.py")
    (tmp_path / ".gitignore").write_text("*\n")
    assert names(find("project"), tmp_path) == ["project/pkg/a.py", "project/setup.py"]


def test_a_path_given_twice_is_checked_once(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "x/a.py")
    assert names(find(".", "x", "x/a.py", "./x/../x/a.py"), tmp_path) == ["x/a.py"]


def test_a_missing_path(find: Find, tmp_path: Path) -> None:
    found = find("gone")
    assert not found.files
    assert [(each.path, each.message) for each in found.problems] == [
        (str(tmp_path / "gone"), "cannot read: No such file or directory")
    ]


@posix_only
def test_a_loop_of_links_to_folders_ends(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "x/a.py")
    (tmp_path / "x/up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "x/self").symlink_to("self")
    (tmp_path / "x/loop.py").symlink_to("loop.py")
    found = find()
    assert names(found, tmp_path) == ["x/a.py"]
    assert [each.message for each in found.problems] == [
        "cannot read: Too many levels of symbolic links"
    ]


@posix_only
def test_a_link_to_a_checked_file_is_not_checked_again(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "a.py", "else.txt")
    (tmp_path / "b.py").symlink_to("a.py")
    (tmp_path / "c.py").symlink_to("else.txt")
    assert names(find(), tmp_path) == ["a.py", "c.py"]


@posix_only
def test_a_fifo_is_not_opened(find: Find, tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    for found in (find(), find("a.py", "pipe.py")):
        assert names(found, tmp_path) == ["a.py"]
        assert [each.message for each in found.problems] == ["cannot read: not a regular file"]


@posix_only
def test_an_unreadable_folder(find: Find, tmp_path: Path, unprivileged: Unprivileged) -> None:
    make(tmp_path, "a.py", "closed/b.py")
    (tmp_path / "closed").chmod(0)
    try:
        with unprivileged():
            found = find()
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert names(found, tmp_path) == ["a.py"]
    assert [each.message for each in found.problems] == ["cannot read: Permission denied"]


def test_a_folder_that_goes_away_during_the_walk(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a.py", "gone/b.py")
    scandir = os.scandir

    def scan_until_gone(path: str) -> Any:
        if path.endswith("gone"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan_until_gone)
    found = find()
    assert names(found, tmp_path) == ["a.py"]
    assert len(found.problems) == 1


def test_very_deep_folders(find: Find, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*(["d"] * 300))
    make(deep, "a.py")
    assert len(find().files) == 1
