"""Frameworks that do steps of the training loop themselves: one table, easy to extend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.analysis.definitions import ClassDefinition
    from trainlint.analysis.file_model import FileModel


@dataclass(frozen=True, slots=True)
class Framework:
    """What a framework takes over in classes that derive from its bases.

    ``bases``: last parts of the names of classes that users derive from. ``modules``: the top-level
    packages that the bases come from; empty for any.
    """

    name: str
    modules: tuple[str, ...]
    bases: frozenset[str]
    switches_modes: bool = True
    switches_gradients: bool = True
    steps_optimizers: bool = True
    sets_epochs: bool = True


FRAMEWORKS = (
    Framework(
        "Lightning",
        ("lightning", "pytorch_lightning", "lightning_fabric"),
        frozenset({"LightningModule", "LightningDataModule", "Callback"}),
    ),
    Framework(
        "Hugging Face Trainer",
        ("transformers", "trl", "sentence_transformers"),
        frozenset({"Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "TrainerCallback"}),
    ),
    Framework("fastai", ("fastai",), frozenset({"Callback", "Learner"})),
    Framework("Composer", ("composer",), frozenset({"ComposerModel", "Callback", "Algorithm"})),
    Framework(
        "skorch", ("skorch",), frozenset({"NeuralNet", "NeuralNetClassifier", "NeuralNetRegressor"})
    ),
    Framework(
        "MMEngine",
        ("mmengine", "mmcv", "mmdet", "mmseg", "mmcls", "mmpretrain"),
        frozenset({"BaseModel", "Hook", "BaseRunner", "OptimWrapper"}),
    ),
    Framework("Keras", ("keras", "tensorflow"), frozenset({"Model", "Layer", "Callback"})),
    Framework("Catalyst", ("catalyst",), frozenset({"Runner", "Callback", "SupervisedRunner"})),
)


def framework_of(definition: ClassDefinition) -> Framework | None:
    """The framework that a class of the project is written for, if any."""
    for name in definition.external_bases():
        if name is None:
            continue
        top, last = name.partition(".")[0], name.rpartition(".")[2]
        for framework in FRAMEWORKS:
            if last in framework.bases and top in framework.modules:
                return framework
    return None


def imports_framework(file: FileModel, *tops: str) -> bool:
    """Whether the file imports one of these top-level packages."""
    from ast import Import, ImportFrom

    names = [alias.name for node in file.nodes(Import) for alias in node.names]
    names += [node.module or "" for node in file.nodes(ImportFrom) if not node.level]
    return any(name.partition(".")[0] in tops for name in names)
