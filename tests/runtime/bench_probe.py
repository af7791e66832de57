"""The bench: every clean program and every mutation, end to end through the command line.

    python tests/runtime/bench_probe.py [--jobs 1] [--only NAME] [--clean FOLDER ...]

``--clean`` adds every ``*.py`` of a folder as a clean program (a checkout of examples, say). Prints
one line a program, then the totals: faults found under the right name, clean programs without any
FAIL, warnings a clean program.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from mutations import MUTATIONS, PROGRAMS, Mutation
from scripts import probe_json


def _rules(report: dict[str, Any], level: str) -> list[str]:
    return [f["rule"] for f in report["findings"] if f["level"] == level]


def run_mutation(mutation: Mutation, folder: Path) -> bool:
    """Whether a fault is found under one of its names."""
    script = folder / f"{mutation.name}.py"
    script.write_text(mutation.source())
    args = [] if mutation.fixed else ["--no-fixed-batch"]
    _, report = probe_json(folder, *args, str(script))
    named = _rules(report, "fail") + _rules(report, "warn")
    found = bool(set(named) & set(mutation.rules))
    print(f"{'found ' if found else 'MISSED'}  {mutation.name}: {', '.join(named) or 'nothing'}")
    return found


def run_clean(script: Path, folder: Path) -> tuple[int, int]:
    """The numbers of FAILs and WARNs of a clean program."""
    _, report = probe_json(folder, str(script))
    fails, warns = _rules(report, "fail"), _rules(report, "warn")
    print(f"{'FAIL  ' if fails else 'clean '}  {script.name}: {', '.join(fails + warns) or '-'}")
    return len(fails), len(warns)


def main() -> int:
    """Run the bench; 0 if it meets its own targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--clean", nargs="*", default=[], type=Path)
    options = parser.parse_args()
    scripts = sorted(PROGRAMS.glob("*.py"))
    scripts += [path for folder in options.clean for path in sorted(folder.glob("*.py"))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clean = [run_clean(s, folder) for s in scripts if options.only in s.stem]
        wanted = [m for m in MUTATIONS if options.only in m.name]
        found = [run_mutation(m, folder) for m in wanted]
    failing, warnings = sum(f > 0 for f, _ in clean), sum(w for _, w in clean)
    print(f"mutations found: {sum(found)} of {len(found)}")
    print(f"clean programs with a FAIL: {failing} of {len(clean)}; warnings: {warnings}")
    good = not failing and sum(found) >= 0.95 * len(found) and warnings <= 0.5 * len(clean)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
