"""Clean programs stay without a FAIL, and each mutation is found (the bench has all of them)."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import MUTATIONS, PROGRAMS, Mutation
from scripts import probe_json, write

pytestmark = pytest.mark.slow
BASES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
# One mutation of each family here; all of them in the bench.
SAMPLE = [m for m in MUTATIONS if m.name.startswith(("mlp-no", "gpt-no-c", "regression-clip"))]


@pytest.mark.parametrize("base", BASES)
def test_clean(base: str, tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, str(PROGRAMS / f"{base}.py"))
    assert [f["rule"] for f in report["findings"] if f["level"] == "fail"] == []
    assert (code, report["instrument_errors"]) == (0, [])


@pytest.mark.parametrize("mutation", SAMPLE, ids=lambda m: m.name)
def test_mutation(mutation: Mutation, tmp_path: Path) -> None:
    script = write(tmp_path, mutation.source())
    args = [] if mutation.fixed else ["--no-fixed-batch"]
    _, report = probe_json(tmp_path, *args, str(script))
    assert {f["rule"] for f in report["findings"]} & set(mutation.rules)
