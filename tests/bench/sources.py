"""The correct programs that the recall bench breaks: our own trainers, and published packages."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WORK = ROOT / ".bench"
_MAX_BYTES = 300_000


@dataclass(frozen=True)
class Source:
    """A folder of programs. ``root`` is the project that they belong to."""

    name: str
    root: Path
    files: tuple[Path, ...]


PACKAGES = {
    "chemprop==1.6.1": ("chemprop/train",),
    "pythae==0.1.2": ("src/pythae/trainers",),
    "open-clip-torch==3.3.0": ("src/open_clip_train",),
}
"""Source distributions, and the folders of each that hold training code."""


def sources() -> Iterator[Source]:
    """All sources; packages are downloaded by pip when they are first asked for."""
    yield _source("reference_trainers", ROOT / "reference_trainers", ("",))
    for requirement, folders in PACKAGES.items():
        yield _source(requirement, source_distribution(requirement), folders)


def _source(name: str, root: Path, folders: tuple[str, ...]) -> Source:
    found = {path for folder in folders for path in sorted((root / folder).rglob("*.py"))}
    files = [path for path in sorted(found) if path.stat().st_size <= _MAX_BYTES]
    return Source(name, root, tuple(path for path in files if not _is_test(path, root)))


def _is_test(path: Path, root: Path) -> bool:
    return any(part.startswith("test") for part in path.relative_to(root).parts)


def source_distribution(requirement: str) -> Path:
    """The unpacked source distribution of a package, below ``.bench``.

    Raises:
        SystemExit: pip cannot bring it.
    """
    folder = WORK / "sdists" / requirement.replace("==", "-")
    if not folder.is_dir():
        downloads = WORK / "downloads" / requirement
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(downloads), requirement]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"cannot download {requirement}: is the package index within reach?")
        archive = next(downloads.glob("*.tar.gz"))
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())
