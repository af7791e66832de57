"""The correct programs that the recall bench breaks: our own, and those of published packages."""

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
OURS = {
    "probed programs": ROOT / "tests" / "runtime" / "programs",  # those that the probe passes
    "bench programs": ROOT / "tests" / "bench" / "programs",  # spellings that no package has
}


@dataclass(frozen=True)
class Source:
    """A folder of programs. ``root`` is the project that they belong to."""

    name: str
    root: Path
    files: tuple[Path, ...]


PACKAGES = {
    "avalanche-lib==0.6.0": ("avalanche/training", "examples"),
    "chemprop==1.6.1": ("chemprop/models", "chemprop/train"),
    "deepctr-torch==0.3.0": ("deepctr_torch/models",),
    "denoising-diffusion-pytorch==2.3.4": ("denoising_diffusion_pytorch",),
    "easyfsl==1.5.0": ("easyfsl/methods",),
    "flair==0.15.1": ("flair/nn", "flair/trainers"),
    "litgpt==0.5.13": ("litgpt/finetune", "litgpt/pretrain.py"),
    "mace-torch==0.3.16": ("mace/tools",),
    "nnunetv2==2.8.1": ("nnunetv2/inference", "nnunetv2/run", "nnunetv2/training"),
    "opacus==1.6.0": ("examples",),
    "open-clip-torch==3.3.0": ("src/open_clip_train",),
    "opennmt-py==3.5.1": ("onmt/trainer.py", "onmt/utils"),
    "poutyne==1.19.0": ("examples", "slides/src/code"),
    "pykeen==1.11.1": ("src/pykeen/evaluation", "src/pykeen/training"),
    "pythae==0.1.2": ("src/pythae/trainers",),
    "pytorch-ignite==0.5.5": ("examples",),
    "recbole==1.2.1": ("recbole/trainer",),
    "sbi==0.27.0": ("sbi/inference", "sbi/utils"),
    "simpletransformers==0.70.8": ("simpletransformers",),
    "skorch==1.4.0": ("skorch",),
    "stable-baselines3==2.9.2": ("stable_baselines3",),
    "stylegan2-pytorch==1.9.0": ("stylegan2_pytorch",),
    "tianshou==2.0.1": ("tianshou/algorithm",),
    "torch-geometric==2.8.1": (
        "torch_geometric/explain",
        "torch_geometric/graphgym",
        "torch_geometric/llm",
    ),
}
"""Source distributions, and the folders or files of each that hold training code."""


def sources() -> Iterator[Source]:
    """All sources; packages are downloaded by pip when they are first asked for."""
    yield _source("reference_trainers", ROOT / "reference_trainers", ("",))
    for name, folder in OURS.items():
        yield Source(name, folder, tuple(sorted(folder.glob("*.py"))))
    for requirement, folders in PACKAGES.items():
        yield _source(requirement, source_distribution(requirement), folders)


def _source(name: str, root: Path, folders: tuple[str, ...]) -> Source:
    found: set[Path] = set()
    for folder in folders:
        place = root / folder
        found.update([place] if place.is_file() else place.rglob("*.py"))
    files = (path for path in sorted(found) if path.stat().st_size <= _MAX_BYTES)
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
