"""A scout may only say "not here": with and without scouts, all findings are the same.

``make bench`` compares the same over timm's source distribution.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.analysis import Project, SourceFile
from trainlint.engine import as_finding, check_file
from trainlint.finding import Finding
from trainlint.registry import all_rules

HERE = Path(__file__).parent
FOLDERS = [
    *sorted(path for path in (HERE / "rules").iterdir() if path.is_dir()),
    HERE / "reports",
    HERE / "demo",
    HERE.parent / "reference_trainers",
]


def findings(path: Path, root: Path, *, use_scout: bool) -> list[Finding]:
    """All that all rules say about a file."""
    source = SourceFile.from_bytes(path, path.read_bytes())
    result = check_file(source, Project(root), all_rules(), use_scout=use_scout)
    return [as_finding(report, source) for report in result.reports]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_scouts_change_nothing(folder: Path) -> None:
    for path in sorted(folder.rglob("*.py")):
        with_scout = findings(path, folder, use_scout=True)
        assert with_scout == findings(path, folder, use_scout=False), path
