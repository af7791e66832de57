"""Synthetic data in the files that published training scripts download, small and learnable."""

from __future__ import annotations

import pickle
import random
import shutil
import struct
import tarfile
from pathlib import Path

import numpy

SEED = 0


def digits(folder: Path, train: int = 2560, test: int = 320) -> None:
    """The four files of MNIST below ``folder``: each class is a bright patch of its own."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    source = numpy.random.default_rng(SEED)
    for name, size in (("train", train), ("t10k", test)):
        labels = source.permutation(numpy.arange(size) % 10).astype(numpy.uint8)
        images = source.integers(0, 60, (size, 28, 28), dtype=numpy.uint8)
        for position, label in enumerate(labels):
            row, column = divmod(int(label), 4)
            images[position, 4 + 7 * row : 10 + 7 * row, 2 + 6 * column : 8 + 6 * column] = 230
        header = struct.pack(">IIII", 2051, size, 28, 28)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 2049, size) + labels.tobytes()
        )


def text(folder: Path, lines: int = 1500) -> None:
    """Three files of words, in the layout of WikiText, in which each word hints at the next."""
    folder.mkdir(parents=True)
    source = random.Random(SEED)
    for name, size in (("train", lines), ("valid", lines // 10), ("test", lines // 10)):
        written = []
        for _ in range(size):
            word = source.randrange(300)
            words = [word := (word * 7 + source.randrange(3)) % 300 for _ in range(20)]
            written.append(" ".join(f"w{word}" for word in words))
        (folder / f"{name}.txt").write_text("\n".join(written) + "\n")


def citations(folder: Path, papers: int = 1700, words: int = 120, topics: int = 7) -> None:
    """The two files of Cora: words follow the topic, and papers cite within their topic."""
    folder.mkdir(parents=True)
    source = numpy.random.default_rng(SEED)
    topic = source.integers(0, topics, papers)
    likely = source.random((topics, words)) < 0.2
    rows = (source.random((papers, words)) < numpy.where(likely[topic], 0.5, 0.05)).astype(int)
    rows[:, 0] = 1
    lines = [
        "\t".join([str(paper), *map(str, rows[paper]), f"topic_{topic[paper]}"])
        for paper in range(papers)
    ]
    (folder / "cora.content").write_text("\n".join(lines) + "\n")
    pairs = [(p, source.choice(numpy.flatnonzero(topic == topic[p]))) for p in range(papers)]
    unique = sorted({(int(a), int(b)) for a, b in pairs if a != b})
    (folder / "cora.cites").write_text("\n".join(f"{a}\t{b}" for a, b in unique) + "\n")


def downloaded_citations(folder: Path) -> None:
    """The same for a script that fetches the archive each time: its ``requests`` finds it here."""
    citations(folder / "fetched" / "cora")
    with tarfile.open(folder / "cora.tgz", "w:gz") as archive:
        archive.add(folder / "fetched" / "cora", "cora")
    (folder / "requests.py").write_text(
        "import contextlib, types\n"
        "@contextlib.contextmanager\n"
        "def get(url, **options):\n"
        "    with open(url.rsplit('/', 1)[1], 'rb') as stream:\n"
        "        yield types.SimpleNamespace(raw=stream)\n"
    )


def photographs(folder: Path, count: int = 72, side: int = 288) -> None:
    """Smooth coloured pictures in the two folders of BSDS300."""
    from PIL import Image

    source = numpy.random.default_rng(SEED)
    for name, size in (("train", count), ("test", count // 6)):
        (folder / "BSDS300" / "images" / name).mkdir(parents=True)
        for position in range(size):
            small = source.integers(0, 255, (9, 9, 3), dtype=numpy.uint8)
            picture = Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC)
            picture.save(folder / "BSDS300" / "images" / name / f"{position}.jpg")


def waves(folder: Path, count: int = 10, length: int = 60) -> None:
    """The array of sine waves that a script of the example itself generates, smaller."""
    import torch

    starts = numpy.random.default_rng(SEED).integers(-80, 80, (count, 1))
    torch.save(numpy.sin((numpy.arange(length) + starts) / 20.0), folder / "traindata.pt")


def characters(folder: Path, size: int = 40_000, vocabulary: int = 65) -> None:
    """The token files of nanoGPT: each character mostly follows from the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    steps = numpy.random.default_rng(SEED).integers(7, 10, size)
    tokens = (numpy.cumsum(steps) % vocabulary).astype(numpy.uint16)
    tokens[: size // 2].tofile(folder / "train.bin")
    tokens[size // 2 :].tofile(folder / "val.bin")
    with (folder / "meta.pkl").open("wb") as stream:
        pickle.dump({"vocab_size": vocabulary, "itos": {}, "stoi": {}}, stream)


def copied(source: Path, folder: Path) -> None:
    """A checkout's folder of source, without its history."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git", "*.ipynb"))
