"""How fast ``trainlint check`` is, as ratios to its peers in the same run.

    make bench                       everything; the slow peers take many minutes
    python -m tests.bench.speed --without-slow-peers

Needs a package index: takes source distributions, and installs the peers each in an environment
of its own, below ``.bench``. All times are whole-process wall times; of the fast commands, the best
of several. A line that starts with MISS does not meet its bound.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WORK = ROOT / ".bench"
TIMM = "timm==1.0.31"
OTHERS = (
    "accelerate==1.15.0",
    "pytorch-metric-learning==2.9.0",
    "segmentation-models-pytorch==0.6.0",
    "ultralytics==8.4.190",
)
PEERS = {"torch-preflight": "torch-preflight==0.5.0", "torchfix": "torchfix==0.7.0"}
REPEATS = 5
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}
SCRIPT = ROOT / "reference_trainers" / "vision" / "resnet.py"


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, the figure, and the bound that it has to meet."""

    what: str
    figure: float
    bound: str
    is_met: bool


def main() -> None:
    """Measure, print the table, and exit with 1 if a bound is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-slow-peers", action="store_true")
    slow_peers = not parser.parse_args().without_slow_peers
    WORK.mkdir(exist_ok=True)
    (WORK / ".gitignore").write_text("*\n")
    timm, *others = (source_distribution(requirement) for requirement in (TIMM, *OTHERS))
    peers = {name: environment(name, requirement) for name, requirement in PEERS.items()}
    rows = [
        *cold_against_ruff(timm),
        *warm_against_ruff(timm),
        *one_script(peers["torch-preflight"]),
        *start_up(),
        *growth(timm),
        *without_scout([timm, *others]),
    ]
    if slow_peers:
        rows += cold_against_slow_peers(timm, peers)
    rows.append(peak_memory([timm, *others]))
    for row in rows:
        print(f"{'ok  ' if row.is_met else 'MISS'} {row.what:<62} {row.figure:8.2f}  {row.bound}")
    sys.exit(0 if all(row.is_met for row in rows) else 1)


def source_distribution(requirement: str) -> Path:
    """The unpacked source distribution of a package."""
    name = requirement.replace("==", "-").replace("-", "?")
    found = sorted(path for path in WORK.glob(name) if path.is_dir())
    if not found:
        source_only = ["--no-deps", "--no-binary", ":all:", "--dest", str(WORK)]
        run([sys.executable, "-m", "pip", "download", "--quiet", *source_only, requirement])
        for archive in WORK.glob("*.tar.gz"):
            with tarfile.open(archive) as opened:
                opened.extractall(WORK, filter="data")
        found = sorted(path for path in WORK.glob(name) if path.is_dir())
    return found[0]


def environment(name: str, requirement: str) -> Path:
    """The folder of scripts of an environment in which one peer is installed."""
    folder = WORK / f"environment-{name}"
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    if not (scripts / name).exists():
        run([sys.executable, "-m", "venv", str(folder)])
        run([str(scripts / "python"), "-m", "pip", "install", "--quiet", requirement])
    return scripts


def trainlint(*arguments: str | Path) -> list[str]:
    """The command line of a check with all rules."""
    scripts = Path(sys.executable).parent
    return [str(scripts / "trainlint"), "check", "--select", "ALL", "--output-format", "concise",
            *map(str, arguments)]  # fmt: skip


def ruff(folder: Path) -> list[str]:
    """The run of ruff that the bounds are set against; git ignores the folder that it looks at."""
    scripts = Path(sys.executable).parent
    return [str(scripts / "ruff"), "check", "--no-cache", "--no-respect-gitignore",
            "--output-format", "concise", str(folder)]  # fmt: skip


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; findings are no failure, a crash is."""
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def seconds(command: Sequence[str], repeats: int = REPEATS) -> float:
    """The best wall time of a command."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run(command)
        best = min(best, time.perf_counter() - start)
    return best


def alternating(first: Sequence[str], second: Sequence[str]) -> tuple[float, float]:
    """The best wall times of two commands that take turns, so that both see the same machine."""
    times = [(seconds(first, 1), seconds(second, 1)) for _ in range(REPEATS)]
    return min(one for one, _ in times), min(other for _, other in times)


def at_most(what: str, figure: float, bound: float) -> Row:
    """A row whose figure must not exceed the bound."""
    return Row(what, figure, f"at most {bound:g}", figure <= bound)


def at_least(what: str, figure: float, bound: float) -> Row:
    """A row whose figure must reach the bound."""
    return Row(what, figure, f"at least {bound:g}", figure >= bound)


def cold_against_ruff(timm: Path) -> list[Row]:
    """Nothing cached."""
    ours, theirs = alternating(trainlint("--no-cache", timm), ruff(timm))
    return [at_most("cold over timm, times ruff", ours / theirs, 3)]


def cold_against_slow_peers(timm: Path, peers: dict[str, Path]) -> list[Row]:
    """Nothing cached, against the tools that look for the same kind of bug."""
    ours = seconds(trainlint("--no-cache", timm))
    preflight = seconds([str(peers["torch-preflight"] / "torch-preflight"), "check", str(timm)], 1)
    torchfix = seconds([str(peers["torchfix"] / "torchfix"), "--select=ALL", str(timm)], 1)
    return [
        at_least("cold over timm, times faster than torch-preflight", preflight / ours, 80),
        at_least("cold over timm, times faster than TorchFix", torchfix / ours, 80),
    ]


def warm_against_ruff(timm: Path) -> list[Row]:
    """Nothing changed since the last run, then one file changed."""
    copy = fresh_copy(timm, "warm")
    cached = trainlint("--cache-dir", WORK / "cache", copy)
    shutil.rmtree(WORK / "cache", ignore_errors=True)
    run(cached)
    ours, theirs = alternating(cached, ruff(copy))
    changed = copy / "timm" / "models" / "vision_transformer.py"
    after_change: list[float] = []
    for count in range(REPEATS):
        changed.write_text(changed.read_text("utf-8") + f"# change {count}\n", "utf-8")
        after_change.append(seconds(cached, 1))
    alone = seconds(trainlint("--no-cache", changed))
    return [
        at_most("warm over timm, times ruff", ours / theirs, 0.5),
        at_most("one file changed, seconds beyond that file alone", min(after_change) - alone, 0.1),
    ]


def one_script(preflight: Path) -> list[Row]:
    """One clean training script of about 450 lines, the shortest of the reference trainers."""
    ours, theirs = alternating(
        trainlint("--no-cache", SCRIPT), [str(preflight / "torch-preflight"), "check", str(SCRIPT)]
    )
    return [at_least("one clean script, times faster than torch-preflight", theirs / ours, 1.5)]


def start_up() -> list[Row]:
    """The version, against the import of click alone."""
    scripts = Path(sys.executable).parent
    version, click = alternating(
        [str(scripts / "trainlint"), "--version"], [sys.executable, "-c", "import click"]
    )
    return [at_most("--version, times `import click`", version / click, 3)]


def growth(timm: Path) -> list[Row]:
    """Four and sixteen copies take four and sixteen times as long, start-up apart."""
    folder = WORK / "copies"
    shutil.rmtree(folder, ignore_errors=True)
    taken: dict[int, float] = {}
    for count in (1, 4, 16):
        for number in range(len(list(folder.glob("*"))), count):
            shutil.copytree(timm, folder / f"copy{number}")
        taken[count] = seconds(trainlint("--no-cache", folder), 2)
    shutil.rmtree(folder)
    return [
        at_most("4 copies of timm, times one, over 4", taken[4] / taken[1] / 4, 1.15),
        at_most("16 copies of timm, times one, over 16", taken[16] / taken[1] / 16, 1.15),
    ]


def without_scout(folders: Sequence[Path]) -> list[Row]:
    """Scouts save time, and change nothing else."""
    differing = 0
    for folder in folders:
        with_scout = set(run(trainlint("--no-cache", folder)).stdout.splitlines())
        without = set(run(trainlint("--no-cache", "--no-scout", folder)).stdout.splitlines())
        differing += len(with_scout ^ without)
    what = f"lines that differ without scouts, {len(folders)} packages"
    return [at_most(what, float(differing), 0)]


def fresh_copy(folder: Path, name: str) -> Path:
    """A copy of a folder that a measurement may change."""
    copy = WORK / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy


def peak_memory(folders: Sequence[Path]) -> Row:
    """The most memory that any process of a run over several packages has held."""
    command = trainlint("--no-cache", *folders)
    script = (
        "import resource, subprocess, sys;"
        f"subprocess.run({command!r}, stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = run([sys.executable, "-c", script])
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return at_most("peak memory of any process, MB", int(done.stdout) / unit, 400)


if __name__ == "__main__":
    main()
