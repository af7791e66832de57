"""The map in reference_trainers/README.md: which trainer shows which line of the seed documents.

Trainers change and their lines move. Each row of the map therefore names a piece of code to look
for; `python tests/reference_trainers/seed_map.py` finds it again and writes the new lines. A row
that begins with the head of a function or class covers all of it.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

TRAINERS = Path(__file__).parents[2] / "reference_trainers"
README = TRAINERS / "README.md"
SEED_LENGTHS = {"A": 631, "B": 247}  # lines of domain-specific...txt and training-nuts...txt

# The line of each section's heading, and its title.
SECTIONS = {
    "A": {
        24: "Computer vision training",
        128: "Diffusion model training",
        231: "EMA models",
        292: "Contrastive, self-supervised",
        325: "Fine-tuning, transfer",
        375: "Multi-GPU, distributed",
        426: "Checkpointing",
        459: "Data loading for images",
        518: "LLM data loading",
        552: "Architecture tables",
        597: "BPB evaluation",
    },
    "B": {
        3: "Advice",
        8: "Coding mistakes",
        16: "Bias and variance",
        22: "Data processing",
        30: "What to try next",
        38: "Overfitting",
        48: "Project structure",
        53: "Training issues",
        60: "Vanishing, exploding gradients",
        66: "Debugging activations",
        147: "Initialization",
        172: "Distributed training",
        177: "Pretraining",
        181: "Approaches",
        186: "LR schedules",
        202: "Regularization",
        208: "Instruction fine tuning",
        213: "LLM scaling",
        215: "Larger than memory",
    },
}

ROW = re.compile(
    r"^\| (?P<seed>[AB]) (?P<first>\d+)-(?P<last>\d+) \|.*\| "
    r"(?P<file>[a-z_]+/[a-z0-9_]+\.py|README\.md) \| "
    r"(?P<start>\d+)-(?P<end>\d+) \| `(?P<token>[^`]+)` \|$"
)


@dataclass(frozen=True)
class Row:
    seed: str
    first: int
    last: int
    file: str
    start: int
    end: int
    token: str

    def lines(self) -> list[str]:
        """What the row points at."""
        return (
            (TRAINERS / self.file)
            .read_text(encoding="utf-8")
            .splitlines()[self.start - 1 : self.end]
        )


def parse(line: str) -> Row | None:
    match = ROW.match(line)
    if match is None:
        return None
    cells = match.groupdict()
    first, last, start, end = (int(cells[name]) for name in ("first", "last", "start", "end"))
    return Row(cells["seed"], first, last, cells["file"], start, end, cells["token"])


def read_map() -> list[Row]:
    lines = README.read_text(encoding="utf-8").splitlines()
    return [row for row in map(parse, lines) if row is not None]


def sections_of(file: str) -> list[str]:
    """The sections of the seeds that a trainer shows, as "A Checkpointing", in their order."""
    shown = []
    for seed, sections in SECTIONS.items():
        for row in read_map():
            if (row.seed, row.file) == (seed, file):
                begin = max(line for line in sections if line <= row.last)
                shown.append(f"{seed} {sections[begin]}")
    return list(dict.fromkeys(shown))


def moved(row: Row) -> tuple[int, int]:
    """Where the row's piece of code stands now: the occurrence nearest to where it stood."""
    lines = (TRAINERS / row.file).read_text(encoding="utf-8").splitlines()
    places = [number for number, line in enumerate(lines, start=1) if row.token in line]
    if not places:
        raise SystemExit(f"{row.file} does not contain `{row.token}` any more")
    start = min(places, key=lambda place: abs(place - row.start))
    end = end_of_definition(row.file, start)
    return start, end or min(len(lines), start + row.end - row.start)


def end_of_definition(file: str, line: int) -> int | None:
    """The last line of the function or class whose head stands in a line; None where none does."""
    for node in ast.walk(ast.parse((TRAINERS / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno == line:
            return node.end_lineno
    return None


def main() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    for index, line in enumerate(lines):
        row = parse(line)
        if row is not None and row.file != "README.md":
            start, end = moved(row)
            old, new = f"| {row.start}-{row.end} | `", f"| {start}-{end} | `"
            lines[index] = new.join(line.rsplit(old, 1))
    README.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
