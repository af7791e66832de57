"""Run a trainer as a user would, and read its summary."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TRAINERS = Path(__file__).parents[2] / "reference_trainers"
RECIPES = sorted(
    path.relative_to(TRAINERS).as_posix()
    for path in TRAINERS.glob("*/*.py")
    if path.name != "__init__.py"
)
# One thread and no GPU: what a trainer promises, it promises for one core.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class Summary:
    numbers: dict[str, float]
    name: str  # of the number that the target is about
    sign: str  # >= or <=
    target: float
    cpu_seconds: float

    @property
    def value(self) -> float:
        return self.numbers[self.name]

    @property
    def reached(self) -> bool:
        return self.value >= self.target if self.sign == ">=" else self.value <= self.target


def run(recipe: str, *arguments: str) -> Summary:
    """The summary of a run; the processor's time, since a busy machine stretches the clock's."""
    before = os.times()
    process = subprocess.run(
        [sys.executable, str(TRAINERS / recipe), *arguments],
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=3600,
        check=False,
    )
    if process.returncode != 0:
        raise AssertionError(process.stdout)
    after = os.times()
    used = after.children_user + after.children_system
    return read(process.stdout, used - before.children_user - before.children_system)


def read(output: str, cpu_seconds: float = 0.0) -> Summary:
    lines = dict(re.findall(r"^(\w+): +(.+?)\s*$", output, flags=re.MULTILINE))
    match = re.fullmatch(r"(\w+) (>=|<=) ([\d.]+)", lines.get("target", ""))
    assert match is not None, f"no readable target in the summary:\n{output[-2000:]}"
    numbers = {}
    for name, value in lines.items():
        try:
            numbers[name] = float(value)
        except ValueError:  # a path, a sentence, the target itself
            continue
    return Summary(numbers, match[1], match[2], float(match[3]), cpu_seconds)
