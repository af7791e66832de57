from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.datasets import purpose_of_dataset
from trainlint.analysis.loaders import Loader, Purpose
from trainlint.analysis.shared_wholes import shared_transforms
from trainlint.analysis.trace import EventKind, events
from trainlint.analysis.transforms import (
    possible_random_transforms,
    random_transforms,
    splitting,
    whole,
)
from trainlint.analysis.values import Instance, Object, Unknown, Value, options
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import part_in_any_case, part_of_identifier

_ON_PURPOSE = re.compile(
    r"(^|_)tta|simclr|contrast|moco|byol|ssl|self_?sup|robust|corrupt|adv", re.IGNORECASE
)


class ValAugmented(Rule):
    """Validation or test data is changed at random.

    ## What it does
    Reports datasets that a validation or test loader walks and whose transforms draw at random
    (crops, flips, colours): given to the dataset itself, or to the one dataset that `random_split`
    or `Subset` takes the training and the validation part from. Also transforms of two parts of
    one dataset, set one after the other, of which only the last remains.

    ## Why is this bad?
    The score is lower than it should be and another one each time, so that the best epoch is picked
    partly by luck.

    ## Example
    ```python
    from torch.utils.data import DataLoader, random_split
    from torchvision import datasets, transforms

    def make_loaders(folder):
        augment = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
        full = datasets.ImageFolder(folder, transform=augment)
        train_set, val_set = random_split(full, [0.9, 0.1])
        return DataLoader(train_set, 64, shuffle=True), DataLoader(val_set, 64)
    ```

    ## Use instead
    ```python
    import torch
    from torch.utils.data import DataLoader, Subset
    from torchvision import datasets, transforms

    def make_loaders(folder):
        augment = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
        plain = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
        train_full = datasets.ImageFolder(folder, transform=augment)
        val_full = datasets.ImageFolder(folder, transform=plain)
        order = torch.randperm(len(train_full)).tolist()
        cut = len(order) * 9 // 10
        train_set, val_set = Subset(train_full, order[:cut]), Subset(val_full, order[cut:])
        return DataLoader(train_set, 64, shuffle=True), DataLoader(val_set, 64)
    ```

    ## When not to use it
    Where evaluation averages over random views of each sample.

    ## References
    - [torchvision transforms](https://docs.pytorch.org/vision/stable/transforms.html)
    """

    code = "TLE002"
    severity = Severity.WARNING
    scout = part_in_any_case("oader") & part_of_identifier(
        "Rand", "Jitter", "Aug", "Flip", "Rotate", "Crop", "andom_split", "Subset", "import"
    )
    help = "give evaluation a dataset of its own, with resizing and normalisation only"

    def check(self, file: FileModel) -> Iterator[Report]:
        is_suspect = self.scout.suspects(file.source.glance)
        if not is_suspect or file.is_unit_test:
            return
        made = file.loaders
        for loader in made:
            dataset = loader.argument("dataset")
            if dataset is None or not _evaluates(loader, dataset):
                continue
            found = random_transforms(dataset)
            if found and (place := _place(file, dataset)) is not None:
                yield self.report(place, _message(loader, found[0]))
            elif not found and (inverted := _inverted(file, dataset, made)) is not None:
                yield self.report(inverted, _message(loader, None))
        for shared in shared_transforms(file):
            yield self.report(
                shared.second,
                f"this also replaces the transform of `{shared.parts[0]}` "
                f"(line {shared.first.lineno}): both are parts of one dataset",
            )


def _evaluates(loader: Loader, dataset: Value) -> bool:
    purpose = purpose_of_dataset(loader)
    if loader.trains or Purpose.TRAINING in (purpose, loader.named_purpose):
        return False
    is_evaluation = Purpose.EVALUATION in (purpose, loader.named_purpose)
    return is_evaluation and not _is_on_purpose(loader) and not _is_changed(loader, dataset)


def _is_on_purpose(loader: Loader) -> bool:
    function = loader.file.index.enclosing_function(loader.call)
    names = [loader.name, loader.file.path.stem, function.name if function is not None else ""]
    return any(_ON_PURPOSE.search(name) for name in names)


def _is_changed(loader: Loader, dataset: Value) -> bool:
    """Whether something is assigned to the dataset afterwards: ``val_set.dataset = copy``."""
    held = {*options(dataset), *options(whole(dataset))}
    return any(
        isinstance(event.target, Value)
        and (
            event.target in held
            or (isinstance(event.target, Unknown) and event.target.parent in held)
        )
        and not _is_in_constructor(event.file, event.node)
        for event in events(loader.run.trace, EventKind.SET)
    )


def _is_in_constructor(file: FileModel, node: ast.AST) -> bool:
    function = file.index.enclosing_function(node)
    return function is not None and function.name == "__init__"


def _place(file: FileModel, dataset: Value) -> ast.AST | None:
    """Where the file makes the dataset, or takes the part from the whole."""
    for option in options(dataset):
        made = splitting(option) or option
        node = made.node if isinstance(made, (Object, Instance)) else None
        if node is not None and node in file.index.parents:
            return node
    return None


def _inverted(file: FileModel, dataset: Value, made: list[Loader]) -> ast.AST | None:
    """A random transform that a dataset of the file applies in evaluation and never in training."""
    if not isinstance(dataset, Instance):
        return None
    found = [item.node for item in possible_random_transforms(dataset)]
    siblings = [
        other.argument("dataset")
        for other in made
        if other.purpose is Purpose.TRAINING
        and isinstance(other.argument("dataset"), Instance)
        and getattr(other.argument("dataset"), "definition", None) is dataset.definition
    ]
    in_training = {
        item.node for other in siblings if other for item in possible_random_transforms(other)
    }
    only = [node for node in found if node in file.index.parents and node not in in_training]
    return only[0] if only and siblings and not in_training else None


def _message(loader: Loader, found: Object | None) -> str:
    if found is None:
        return f"applied to what {loader.shown} evaluates on, and never in training"
    last, line = found.dotted.rpartition(".")[2], found.node.lineno
    return f"{loader.shown} evaluates on randomly changed samples: `{last}` (line {line})"
