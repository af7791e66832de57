"""Programs without a fault: our bases, the reference trainers, published examples, nanoGPT.

The published ones are not part of this repository: the bench is told where their checkouts are.
They run as they are, on synthetic data that stands in for what they download, and are made small
by their own flags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import stand_ins
from case import Case
from mutations import PROGRAMS

TRAINERS = Path(__file__).parents[2] / "reference_trainers"
_NO_FIXED_BATCH = ("--no-fixed-batch",)
# Trainers that prepare for a while (pretraining, or three trainings) are told to hurry.
_TRAINER_ARGUMENTS = {
    "fine_tuning/instruction_tuning": ("--pretrain-steps", "20"),
    "debugging/pictures": ("--steps", "40"),
}


def bases() -> list[Case]:
    """The programs that the mutations start from."""
    return [
        Case(path.stem, "base", path.name, partial(_copy_file, path), ranks=_ranks(path))
        for path in sorted(PROGRAMS.glob("*.py"))
    ]


def _ranks(path: Path) -> int:
    return 2 if path.stem == "ddp" else 1


def _copy_file(path: Path, folder: Path) -> None:
    (folder / path.name).write_bytes(path.read_bytes())


def reference_trainers() -> list[Case]:
    """Every recipe, with its defaults; on one core, their fixed batches would take half an hour."""
    cases = []
    for path in sorted(TRAINERS.glob("*/*.py")):
        if path.name != "__init__.py":
            name = path.relative_to(TRAINERS).with_suffix("").as_posix()
            arguments = _TRAINER_ARGUMENTS.get(name, ())
            case = Case(
                name,
                "reference trainer",
                path.name,
                partial(_copy_file, path),
                options=_NO_FIXED_BATCH,
                arguments=arguments,
            )
            cases.append(case)
    return cases


@dataclass(frozen=True)
class _Example:
    """One script of pytorch/examples; ``data`` fills the folder that holds the example's own."""

    folder: str
    arguments: tuple[str, ...] = ()
    data: Callable[[Path], None] | None = None
    name: str = ""
    script: str = "main.py"
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


def _fill_beside(stand_in: Callable[[Path], None], name: str, folder: Path) -> None:
    stand_in(folder / name)


def _beside(stand_in: Callable[[Path], None], name: str) -> Callable[[Path], None]:
    # Not a lambda: the bench sends its cases to other processes.
    return partial(_fill_beside, stand_in, name)


def _digits_and_results(folder: Path) -> None:
    """The example writes into a folder that its repository keeps by a hidden file."""
    _DIGITS(folder)
    (folder / "vae" / "results").mkdir(exist_ok=True)


_DIGITS = _beside(stand_ins.digits, "data")
# The larger networks skip the fixed batch, which would take minutes on one core.
_EXAMPLES = (
    _Example("mnist", ("--epochs", "2", "--batch-size", "16"), _DIGITS),
    _Example("mnist_rnn", ("--batch-size", "16"), _DIGITS),
    _Example("vae", (), _digits_and_results),
    _Example("siamese_network", ("--batch-size", "8"), _DIGITS, options=_NO_FIXED_BATCH),
    _Example(
        "mnist_forward_forward",
        ("--epochs", "3", "--train_size", "500", "--test_size", "100"),
        _beside(stand_ins.digits, "mnist_forward_forward/data"),
    ),
    _Example(
        "dcgan",
        ("--dataset", "fake", "--workers", "0", "--ngf", "8", "--ndf", "8", "--batchSize", "16"),
    ),
    _Example(
        "imagenet",
        ("--dummy", "-a", "shufflenet_v2_x0_5", "-b", "8", "-j", "0"),
        options=_NO_FIXED_BATCH,
    ),
    _Example(
        "super_resolution",
        ("--upscale_factor", "4", "--batchSize", "2", "--threads", "0", "--lr", "0.001"),
        _beside(stand_ins.photographs, "super_resolution/dataset"),
        options=_NO_FIXED_BATCH,
    ),
    _Example(
        "time_sequence_prediction",
        (),
        _beside(stand_ins.waves, "time_sequence_prediction"),
        script="train.py",
        options=_NO_FIXED_BATCH,
        # The example predates torch.load's refusal of numpy arrays.
        environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"), ("MPLBACKEND", "agg")),
    ),
    _Example(
        "word_language_model",
        ("--bptt", "20"),
        _beside(stand_ins.text, "word_language_model/data/wikitext-2"),
        name="word_language_model LSTM",
    ),
    _Example(
        "word_language_model",
        ("--model", "Transformer", "--lr", "5", "--bptt", "20"),
        _beside(stand_ins.text, "word_language_model/data/wikitext-2"),
        name="word_language_model Transformer",
    ),
    _Example("regression"),
    _Example(
        "gat",
        ("--epochs", "40", "--hidden-dim", "16", "--num-heads", "2"),
        _beside(stand_ins.citations, "gat/cora"),
    ),
    _Example("gcn", ("--epochs", "40"), _beside(stand_ins.downloaded_citations, "gcn")),
)
_NANOGPT_FLAGS = (
    "config/train_shakespeare_char.py", "--device=cpu", "--compile=False", "--eval_iters=2",
    "--log_interval=1", "--block_size=64", "--batch_size=8", "--n_layer=4", "--n_head=4",
    "--n_embd=128", "--max_iters=200", "--lr_decay_iters=200",
)  # fmt: skip


def pytorch_examples(checkout: Path) -> list[Case]:
    """Scripts of pytorch/examples that train on one CPU."""
    return [
        Case(
            f"examples {example.name or example.folder}",
            "pytorch/examples",
            example.script,
            partial(_place_example, checkout, example),
            options=example.options,
            arguments=example.arguments,
            inside=example.folder,
            environment=example.environment,
        )
        for example in _EXAMPLES
    ]


def _place_example(checkout: Path, example: _Example, folder: Path) -> None:
    stand_ins.copied(checkout / example.folder, folder / example.folder)
    if example.data is not None:
        example.data(folder)


def nanogpt(checkout: Path) -> list[Case]:
    """nanoGPT with the flags its README gives for a CPU, with and without accumulation."""
    variants = {
        "nanoGPT": ("--dropout=0.0",),
        "nanoGPT accumulating": ("--dropout=0.2", "--gradient_accumulation_steps=3"),
    }
    return [
        Case(
            name,
            "nanoGPT",
            "train.py",
            partial(_place_nanogpt, checkout),
            arguments=(*_NANOGPT_FLAGS, *flags),
            inside="nanoGPT",
        )
        for name, flags in variants.items()
    ]


def _place_nanogpt(checkout: Path, folder: Path) -> None:
    stand_ins.copied(checkout, folder / "nanoGPT")
    stand_ins.characters(folder / "nanoGPT" / "data" / "shakespeare_char")
