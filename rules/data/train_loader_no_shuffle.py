from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.datasets import (
    draws_at_random,
    is_made_up,
    is_random_part,
    is_stream,
    purpose_of_dataset,
)
from trainlint.analysis.evaluation_loops import learns
from trainlint.analysis.loaders import Loader, Purpose, purpose_of_names
from trainlint.analysis.values import Constant, Instance, Object, Unknown, Value, options
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_SHUFFLED_BEFORE = re.compile(r"\bshuffle\(|randperm|permutation|\.sample\(|train_test_split")
_STREAMS = re.compile(r"\bstreaming\s*=\s*True\b")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KEEPS_ORDER = re.compile(
    r"time_?series|forecast|stock|price|sequen|series|bptt|temporal|window|curricul|sorted|bucket|"
    r"order|(^|_)lm(_|$)|language_?model|trajector|stream|iterable|iterator|pipe|torchtext|random|dummy|fake|synthetic|toy",
    re.IGNORECASE,
)


class TrainLoaderNoShuffle(Rule):
    """A training loader never shuffles.

    ## What it does
    Reports loaders that train, by the loop that walks them or by their name, and get neither
    `shuffle` nor a sampler, or get it only on some paths. `shuffle=False` in so many words is taken
    as meant.

    ## Why is this bad?
    The default is `shuffle=False`. Folders of images come class after class: batches of one class
    drive batch norm and SGD back and forth, and every epoch repeats the same batches.

    ## Example
    ```python
    from torch.utils.data import DataLoader

    def fit(model, train_set, optimizer, criterion, epochs):
        train_loader = DataLoader(train_set, batch_size=64)
        for epoch in range(epochs):
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader

    def fit(model, train_set, optimizer, criterion, epochs):
        train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
        for epoch in range(epochs):
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
    ```

    ## Fix safety
    The fix is unsafe: it adds `shuffle=True`, which is wrong where the order of samples matters.

    ## When not to use it
    Where the order is part of the method: curricula, consecutive chunks of a text or a time series.
    Say `shuffle=False` there.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    """

    code = "TLD003"
    severity = Severity.WARNING
    scout = part_of_identifier("oader") & part_of_identifier(
        "train", "Train", "tr_", "backward", "trn"
    )
    help = "pass `shuffle=True`, or `shuffle=False` where the order is meant"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        is_suspect = self.scout.suspects(file.source.glance)
        if not is_suspect or file.is_unit_test:
            return
        for loader in file.loaders:
            place, call = loader.place("shuffle")
            when = _never_shuffles(loader, call)
            if place is file and when and _trains(loader) and not _has_an_order(loader):
                yield self.report(
                    call,
                    f"{loader.shown} {when}: the batches are the same in each epoch",
                    repair=_repair(loader, call),
                )


def _never_shuffles(loader: Loader, call: ast.Call) -> str | None:
    """How it is said, in words; None where somebody chose an order."""
    if loader.has_unseen_arguments or any(
        _is_given(loader.argument(kind)) for kind in ("sampler", "batch_sampler")
    ):
        return None
    given = list(options(loader.argument("shuffle")))
    if any(isinstance(option, Constant) and option.value is None for option in given):
        return "is only shuffled under a condition" if len(given) > 1 else "is never shuffled"
    if not given:
        return "is never shuffled"
    is_default = all(isinstance(option, Constant) and option.value is False for option in given)
    is_meant = call is loader.call or _says_false(call)
    return "is not shuffled by default" if is_default and not is_meant else None


def _says_false(call: ast.Call) -> bool:
    given = [*call.args, *(item.value for item in call.keywords)]
    return any(isinstance(item, ast.Constant) and item.value is False for item in given) or any(
        item.arg in (None, "shuffle") for item in call.keywords
    )


def _is_given(value: Value | None) -> bool:
    return any(not (isinstance(item, Constant) and item.value is None) for item in options(value))


def _trains(loader: Loader) -> bool:
    function = loader.file.index.enclosing_function(loader.call)
    made_to_evaluate = function is not None and purpose_of_names([function.name])
    if Purpose.EVALUATION in (loader.named_purpose, made_to_evaluate):
        return False
    if loader.trains:
        return any(map(learns, loader.loops))
    is_named = loader.named_purpose is Purpose.TRAINING and not loader.loops
    return is_named and purpose_of_dataset(loader) is not Purpose.EVALUATION


def _has_an_order(loader: Loader) -> bool:
    """Whether the data is known, or by its name likely, to come in an order of its own."""
    preparation = _preparation(loader)
    if _SHUFFLED_BEFORE.search(preparation) or _STREAMS.search(preparation):
        return True
    for dataset in options(loader.argument("dataset")):
        if (
            is_stream(dataset)
            or is_random_part(dataset)
            or draws_at_random(dataset)
            or is_made_up(dataset)
            or _KEEPS_ORDER.search(_description(dataset))
        ):
            return True
    batch_size = loader.expression("batch_size")
    spelled = ast.unparse(batch_size) if batch_size is not None else ""
    is_made_elsewhere = spelled == "None" or "len(" in spelled
    return is_made_elsewhere or bool(_KEEPS_ORDER.search(loader.name))


def _preparation(loader: Loader) -> str:
    """The code that prepares the data: around the loader, and that of the dataset's class."""
    file, function = loader.file, loader.file.index.enclosing_function(loader.call)
    around = [function] if function is not None else file.tree.body
    text = [file.segment(item) for item in around if not isinstance(item, _DEFINITIONS) or function]
    for dataset in options(loader.argument("dataset")):
        if isinstance(dataset, Instance):
            text.append(dataset.definition.file.segment(dataset.definition.node))
    return "\n".join(text)


def _description(dataset: Value) -> str:
    if isinstance(dataset, Object):
        return f"{dataset.hint} {dataset.dotted}"
    if isinstance(dataset, Instance):
        return f"{dataset.hint} {dataset.definition.name}"
    return dataset.hint if isinstance(dataset, Unknown) else ""


def _repair(loader: Loader, call: ast.Call) -> Repair | None:
    given = loader.argument("shuffle")
    if (given is not None and call is loader.call) or any(
        item.arg is None for item in call.keywords
    ):
        return None

    def shuffle(editor: Editor) -> None:
        editor.set_argument(call, "shuffle", "True")

    return Repair("shuffle the training data", Applicability.UNSAFE, shuffle)
