"""The table of measurements in reference_trainers/README.md: what each trainer reaches, and why.

`make bench-trainers`, or `python -m tests.reference_trainers.measured`, runs every trainer in full
with three seeds, and again with each of its `COMPARISONS`, and writes the rows; names of recipes
(`language/gpt.py`) run those alone and leave the other rows as they are. A median that misses its
target is marked in the output, and makes the exit code 1. `python -m tests.test_readme` then brings
the times into the README at the top.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from .summary import RECIPES, TRAINERS, Summary, run

README = TRAINERS / "README.md"
HEAD = (
    "| recipe | change | target | median | lowest | highest | CPU seconds |\n"
    "|---|---|---|---|---|---|---|\n"
)
ROW = re.compile(
    r"^\| (?P<recipe>[a-z_]+/[a-z0-9_]+\.py) \| (?P<change>[^|]*?) ?\| "
    r"(?P<target>\w+ [<>]= [\d.]+) \| (?P<median>[\d.]+) \| (?P<lowest>[\d.]+) \| "
    r"(?P<highest>[\d.]+) \| (?P<seconds>\d+) \|$",
    re.MULTILINE,
)

# What a part of a recipe buys: flags that take the part away, or another number of the summary.
COMPARISONS: dict[str, tuple[str, ...]] = {
    "classics/generalisation.py": ("--no-augment", "--dropout=0", "test_time_mean"),
    "classics/tabular.py": ("--balance=none", "--balance=sampler"),
    "diffusion/ddpm.py": ("without_ema", "--guidance=1"),
    "diffusion/flow_matching.py": ("without_ema",),
    "fine_tuning/instruction_tuning.py": ("before", "without_ema"),
    "fine_tuning/lora.py": ("before", "--rank=1"),
    "fine_tuning/transfer.py": ("without_ema", "--no-pretrained", "--strategy=head"),
    "language/gpt.py": ("--no-zero-init", "--logit-cap=0", "--warmup-steps=0", "--mlp=relu2"),
    "memory/mixed_precision.py": ("--amp=bf16",),
    "scale/ddp.py": ("without_ema", "--scaling=none"),
    "scale/fsdp2.py": ("without_ema",),
    "self_supervised/byol.py": ("untrained", "raw_pixels"),
    "self_supervised/large_batch.py": ("--optimizer=lamb --scaling=sqrt", "--optimizer=sgd"),
    "self_supervised/siamese.py": ("--loss=contrastive",),
    "self_supervised/simclr.py": ("untrained", "raw_pixels"),
    "vision/convnext.py": ("without_ema", "--layer-decay=1"),
    "vision/progressive_resizing.py": ("--sizes 16 16 16",),
    "vision/resnet.py": ("without_ema",),
    "vision/vit.py": (
        "without_ema",
        "--no-mix",
        "--no-decay-weights-only",
        "--warmup=0",
        "--no-zero-init",
    ),
}


@dataclass(frozen=True)
class Row:
    """Several runs of one recipe that differ in their seeds alone."""

    recipe: str
    change: str  # flags, or the summary's name of another number; empty: as the recipe is
    target: str
    median: float
    lowest: float
    highest: float
    seconds: int  # of one core, mean

    @property
    def is_reached(self) -> bool:
        """Is the median good enough?"""
        _, sign, value = self.target.split()
        return self.median >= float(value) if sign == ">=" else self.median <= float(value)

    def __str__(self) -> str:
        values = " | ".join(f"{x:.4f}" for x in (self.median, self.lowest, self.highest))
        change = f"`{self.change}` " if self.change else ""
        return f"| {self.recipe} | {change}| {self.target} | {values} | {self.seconds} |"


def rows_in(text: str) -> list[Row]:
    return [
        Row(
            cells["recipe"],
            cells["change"].strip("`"),
            cells["target"],
            float(cells["median"]),
            float(cells["lowest"]),
            float(cells["highest"]),
            int(cells["seconds"]),
        )
        for cells in (match.groupdict() for match in ROW.finditer(text))
    ]


def row_of(recipe: str, change: str, runs: list[Summary]) -> Row:
    """The row of some runs; `change` may name the number to look at instead of the target's."""
    name = change if change in runs[0].numbers else runs[0].name
    values = [one.numbers[name] for one in runs]
    return Row(
        recipe,
        change,
        f"{runs[0].name} {runs[0].sign} {runs[0].target:g}",
        statistics.median(values),
        min(values),
        max(values),
        round(statistics.mean(one.cpu_seconds for one in runs)),
    )


def measure(recipe: str, seeds: int) -> Iterator[Row]:
    plain = [run(recipe, f"--seed={seed}") for seed in range(seeds)]
    yield row_of(recipe, "", plain)
    for change in COMPARISONS.get(recipe, ()):
        if change.startswith("--"):
            flags = change.split()
            runs = [run(recipe, f"--seed={seed}", *flags) for seed in range(seeds)]
            yield row_of(recipe, change, runs)
        else:
            yield row_of(recipe, change, plain)


def write(recipe: str, rows: list[Row]) -> None:
    """Put the rows of one recipe in the place of its old ones; read anew, since runs take long."""
    text = README.read_text(encoding="utf-8")
    found = re.search(r"<!-- measured -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert found is not None
    kept = [row for row in rows_in(found[1]) if row.recipe != recipe and row.recipe in RECIPES]
    lines = [str(row) for row in sorted([*kept, *rows], key=lambda row: row.recipe)]
    start, end = found.span(1)
    table = HEAD + "".join(f"{line}\n" for line in lines)
    README.write_text(text[:start] + table + text[end:], encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=RECIPES, metavar="RECIPE")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    missed = False
    for recipe in arguments.recipes:
        rows = []
        for row in measure(recipe, arguments.seeds):
            rows.append(row)
            misses = not row.change and not row.is_reached
            missed = missed or misses
            print(row, "MISSED" if misses else "", file=sys.stderr, flush=True)
        write(recipe, rows)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
