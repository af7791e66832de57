"""The table of measurements in reference_trainers/README.md: what each trainer reaches, and why.

`make bench-trainers`, or `python -m tests.reference_trainers.measured`, runs every trainer in full
with three seeds, then again with each of its `COMPARISONS`, and writes each row as it comes; names
of recipes (`language/gpt.py`) run those alone and leave the other rows as they are. A run that
misses its target is marked in the output, and makes the exit code 1. `python -m tests.test_readme`
then brings the times into the README at the top.
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
    "| recipe | change | target | median | lowest | highest | beside the recipe | CPU seconds |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
ROW = re.compile(
    r"^\| (?P<recipe>[a-z_]+/[a-z0-9_]+\.py) \| (?P<change>[^|]*?) ?\| "
    r"(?P<target>\w+ [<>]= [\d.]+) \| (?P<median>[\d.]+) \| (?P<lowest>[\d.]+) \| "
    r"(?P<highest>[\d.]+) \|[^|]*\| (?P<seconds>\d+) \|$",
    re.MULTILINE,
)

# What a part of a recipe buys: flags that take the part away, or another number of the summary.
COMPARISONS: dict[str, tuple[str, ...]] = {
    "classics/generalisation.py": ("--no-augment", "--dropout=0", "test_time_mean"),
    "classics/tabular.py": ("--balance=none", "--balance=sampler"),
    "diffusion/ddpm.py": ("without_ema",),
    "diffusion/flow_matching.py": ("without_ema",),
    "fine_tuning/instruction_tuning.py": ("before", "without_ema"),
    "fine_tuning/lora.py": ("before",),
    "fine_tuning/transfer.py": ("without_ema", "--no-pretrained", "--strategy=head"),
    "language/gpt.py": ("--no-zero-init", "--warmup-steps=0"),
    "scale/ddp.py": ("without_ema",),
    "scale/fsdp2.py": ("without_ema",),
    "self_supervised/byol.py": ("untrained", "raw_pixels"),
    "self_supervised/large_batch.py": ("--optimizer=lamb --scaling=sqrt", "--optimizer=sgd"),
    "self_supervised/siamese.py": ("--loss=contrastive",),
    "self_supervised/simclr.py": ("untrained", "raw_pixels"),
    "vision/convnext.py": ("without_ema", "--layer-decay=1", "--layer-scale=0.1"),
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
        """Is the worst run good enough? Then the median is, with a margin."""
        _, sign, value = self.target.split()
        return self.lowest >= float(value) if sign == ">=" else self.highest <= float(value)

    def beside(self, plain: Row) -> str:
        """What the change does to the recipe: a difference counts if no two seeds' runs overlap."""
        if self.lowest <= plain.highest and plain.lowest <= self.highest:
            return "no difference visible at this size"
        larger_is_better = ">=" in self.target
        return "better" if (self.median > plain.median) == larger_is_better else "worse"

    def line(self, plain: Row) -> str:
        """The row as it stands in the table, beside the recipe's own row."""
        values = " | ".join(f"{x:.4f}" for x in (self.median, self.lowest, self.highest))
        change = f"`{self.change}` " if self.change else ""
        beside = f"{self.beside(plain)} " if self.change else ""
        cells = f"{self.recipe} | {change}| {self.target} | {values} | {beside}| {self.seconds}"
        return f"| {cells} |"


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


def measure(recipe: str, seeds: int) -> list[Row]:
    """The recipe as it is, and what else its summary tells."""
    runs = [run(recipe, f"--seed={seed}") for seed in range(seeds)]
    told = [change for change in COMPARISONS.get(recipe, ()) if not change.startswith("--")]
    return [row_of(recipe, change, runs) for change in ("", *told)]


def measure_changed(recipe: str, seeds: int) -> Iterator[Row]:
    """The recipe with each change of its flags."""
    for change in COMPARISONS.get(recipe, ()):
        if change.startswith("--"):
            runs = [run(recipe, f"--seed={seed}", *change.split()) for seed in range(seeds)]
            yield row_of(recipe, change, runs)


def write(rows: list[Row]) -> None:
    """Put rows into the table; read anew, since runs take long.

    A recipe's own row takes the place of all its rows: the others were beside the old one.
    """
    text = README.read_text(encoding="utf-8")
    found = re.search(r"<!-- measured -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert found is not None
    outdated = {row.recipe for row in rows if not row.change}
    replaced = {(row.recipe, row.change) for row in rows}
    kept = [
        row
        for row in rows_in(found[1])
        if row.recipe in RECIPES
        and row.recipe not in outdated
        and (row.recipe, row.change) not in replaced
    ]
    start, end = found.span(1)
    README.write_text(text[:start] + table([*kept, *rows]) + text[end:], encoding="utf-8")


def table(rows: list[Row]) -> str:
    """All rows by recipe, each beside its recipe's own row; a change without one is left out."""
    plain = {row.recipe: row for row in rows if not row.change}
    ordered = sorted((row for row in rows if row.recipe in plain), key=lambda row: row.recipe)
    return HEAD + "".join(f"{row.line(plain[row.recipe])}\n" for row in ordered)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=RECIPES, metavar="RECIPE")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    missed = False
    for recipe in arguments.recipes:  # all targets first: the comparisons take longer
        rows = measure(recipe, arguments.seeds)
        missed = missed or not rows[0].is_reached
        print(rows[0], "" if rows[0].is_reached else "MISSED", file=sys.stderr, flush=True)
        write(rows)
    for recipe in arguments.recipes:
        for row in measure_changed(recipe, arguments.seeds):
            print(row, file=sys.stderr, flush=True)
            write([row])
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
