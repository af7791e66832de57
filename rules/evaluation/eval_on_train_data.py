from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.datasets import is_made_up, purpose_of_dataset
from trainlint.analysis.knowledge.training import sounds_like_evaluation
from trainlint.analysis.loaders import Loader, Purpose
from trainlint.analysis.trace import Event, EventKind, events
from trainlint.analysis.values import Constant, Object, Value, options, overlaps
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier_like, part_of_identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_EVALUATES = re.compile(
    r"(^|[_\W\d])(val|valid|validation|test|tst|eval|dev)|^(val|test)", re.IGNORECASE
)
_ON_PURPOSE = re.compile(r"overfit|sanity|debug|smoke|fast_dev|toy", re.IGNORECASE)
_WALKS_ALL = frozenset(
    f"torch.utils.data.{kind}Sampler" for kind in ("Distributed", "Sequential", "Random")
)
_SWITCH = re.compile(r"train|val|test|mode|phase|split|switch", re.IGNORECASE)


class EvalOnTrainData(Rule):
    """A validation or test loader walks the training data.

    ## What it does
    Reports loaders whose name says validation or test and whose dataset is the training dataset: by
    how that is made (`train=True`, `split="train"`), by its name, or because a training loader
    walks the very same object.

    ## Why is this bad?
    The validation score is a training score. It rewards overfitting, and the checkpoint, the
    learning rate and the stopping time are chosen by it.

    ## Example
    ```python
    from torch.utils.data import DataLoader

    def make_loaders(train_set, val_set):
        train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
        val_loader = DataLoader(train_set, batch_size=64)
        return train_loader, val_loader
    ```

    ## Use instead
    ```python
    from torch.utils.data import DataLoader

    def make_loaders(train_set, val_set):
        train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
        val_loader = DataLoader(val_set, batch_size=64)
        return train_loader, val_loader
    ```

    ## Fix safety
    The fix is unsafe: it takes a validation or test dataset in sight that nothing else uses.

    ## When not to use it
    Where scores on the training data are wanted. Name such a loader so: `train_eval_loader`.

    ## References
    - [scikit-learn: data leakage](https://scikit-learn.org/stable/common_pitfalls.html#data-leakage)
    """

    code = "TLE001"
    severity = Severity.ERROR
    scout = (
        part_of_identifier("oader")
        & part_of_identifier("DataLoader", "import")
        & identifier_like(rb"(?i)val|test|tst|dev(?!ice)")
    )
    help = "give the loader the held-out dataset"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        if file.is_unit_test or not self.scout.suspects(file.source.glance):
            return
        made = file.loaders
        for loader in made:
            place, call = loader.place("dataset")
            if place is file and _is_for_evaluation(loader) and _walks_training_data(loader, made):
                dataset = _dataset_in(call) or call
                yield self.report(
                    dataset,
                    f"{loader.shown} evaluates on the training data",
                    repair=_repair(file, dataset),
                )


def _is_for_evaluation(loader: Loader) -> bool:
    """By its names; not where something picks a part, or the code around says that it is a toy."""
    if (
        loader.draws_from_graph
        or loader.named_purpose is not Purpose.EVALUATION
        or not _EVALUATES.search(loader.name)
    ):
        return False
    picks_a_part = any(
        _may_pick_a_part(option)
        for kind in ("sampler", "batch_sampler")
        for option in options(loader.argument(kind))
    )
    return not picks_a_part and not loader.has_unseen_arguments and not _is_on_purpose(loader)


def _may_pick_a_part(sampler: Value) -> bool:
    if isinstance(sampler, Constant):
        return sampler.value is not None
    return not (isinstance(sampler, Object) and sampler.dotted in _WALKS_ALL)


def _is_on_purpose(loader: Loader) -> bool:
    node: ast.AST | None = loader.call
    while node is not None:
        if isinstance(node, ast.If) and _ON_PURPOSE.search(ast.unparse(node.test)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and _ON_PURPOSE.search(node.name):
            return True
        node = loader.file.index.parents.get(node)
    return False


def _walks_training_data(loader: Loader, made: list[Loader]) -> bool:
    dataset = loader.argument("dataset")
    if dataset is None or loader.trains or _is_switched(loader, dataset):
        return False
    if any(map(is_made_up, options(dataset))):
        return False
    purpose = purpose_of_dataset(loader)
    if purpose is not None:
        return purpose is Purpose.TRAINING
    return any(
        other.run is loader.run
        and other.purpose is Purpose.TRAINING
        and overlaps(other.argument("dataset"), dataset)
        for other in made
    )


def _is_switched(loader: Loader, dataset: Value) -> bool:
    """Whether the dataset is told to be another part, or changed, after it was made."""
    held = set(options(dataset))
    changed = (item for item in events(loader.run.trace, EventKind.SET) if item.target in held)
    if not all(_is_harmless(item) for item in changed):
        return True
    return any(
        event.arguments
        and event.arguments[0] in held
        and isinstance(event.node, ast.Call)
        and isinstance(event.node.func, ast.Attribute)
        and _SWITCH.search(event.node.func.attr)
        for event in events(loader.run.trace)
    )


def _is_harmless(event: Event) -> bool:
    """Another transform does not change which samples are walked; a constructor sets up."""
    if isinstance(event.node, ast.Attribute) and "transform" in event.node.attr:
        return True
    function = event.file.index.enclosing_function(event.node)
    return function is not None and function.name == "__init__"


def _dataset_in(call: ast.Call) -> ast.expr | None:
    given = next((item.value for item in call.keywords if item.arg == "dataset"), None)
    return given or (call.args[0] if call.args else None)


def _repair(file: FileModel, dataset: ast.expr) -> Repair | None:
    """The only dataset for evaluation that is bound in the same scope and never read."""
    if not isinstance(dataset, ast.Name):
        return None
    scope = file.index.scope(dataset)
    read = {
        node.id
        for node in file.nodes(ast.Name)
        if isinstance(node.ctx, ast.Load) and file.index.scope(node) is scope
    }
    unused = [
        name
        for name, bound in file.index.names_bound_in(scope).items()
        if name not in read and _is_dataset_name(name) and _is_bound_before(bound, dataset)
    ]
    if len(unused) != 1:
        return None

    def rename(editor: Editor) -> None:
        editor.replace(dataset, unused[0])

    return Repair(f"evaluate on `{unused[0]}`", Applicability.UNSAFE, rename)


def _is_dataset_name(name: str) -> bool:
    return sounds_like_evaluation(name) and bool(
        re.search(r"set|data|ds|split|subset", name, re.IGNORECASE)
    )


def _is_bound_before(bound: list[ast.AST], place: ast.expr) -> bool:
    return bool(bound) and all(getattr(item, "lineno", 0) <= place.lineno for item in bound)
