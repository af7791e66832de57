"""Who may know whom (see the README's architecture section)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_RULE_INTERFACE = (
    "trainlint.analysis",
    "trainlint.finding",
    "trainlint.fixing",
    "trainlint.rule",
    "trainlint.scout",
)


def imports_of(path: Path) -> Iterator[str]:
    """The dotted modules that a file imports, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def files(*folders: str) -> list[Path]:
    """All Python files below some folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files("rules"), ids=lambda path: path.stem)
def test_a_rule_imports_only_the_rule_interface(path: Path) -> None:
    ours = [name for name in imports_of(path) if name.partition(".")[0] == "trainlint"]
    assert [name for name in ours if not name.startswith(_RULE_INTERFACE)] == []


def test_the_checker_imports_no_rule_by_name_and_never_torch() -> None:
    for path in files("trainlint"):
        for name in imports_of(path):
            assert name.partition(".")[0] not in ("torch", "torchvision"), path
            assert not name.startswith("trainlint.rules."), path


def test_the_checker_imports_only_what_it_declares() -> None:
    """A development environment holds more packages than a plain installation does."""
    declared = {"click", "libcst", "pathspec", "rich", "tomli", "trainlint"}
    for path in files("trainlint", "rules"):
        tops = {name.partition(".")[0] for name in imports_of(path)}
        assert tops <= declared | sys.stdlib_module_names, path


def test_libcst_is_imported_by_the_fixing_engine_alone() -> None:
    importing = {
        path.relative_to(ROOT).parts[:2]
        for path in files("trainlint", "rules")
        for name in imports_of(path)
        if name.partition(".")[0] == "libcst"
    }
    assert importing == {("trainlint", "fixing")}


def test_reference_trainers_import_nothing_of_ours() -> None:
    for path in files("reference_trainers"):
        assert not [name for name in imports_of(path) if name.startswith("trainlint")], path
