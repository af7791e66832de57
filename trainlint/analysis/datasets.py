"""Datasets: which part of the data they hold, by how they are made and what they are called."""

from __future__ import annotations

import ast
import re

from trainlint.analysis.loaders import Loader, Purpose, purpose_of_names
from trainlint.analysis.values import Constant, Instance, Object, Unknown, Value, options

_WORDS = {
    **dict.fromkeys(("train", "training", "trainval", "trn"), Purpose.TRAINING),
    **dict.fromkeys(
        ("val", "valid", "validation", "test", "testing", "dev", "eval"), Purpose.EVALUATION
    ),
}
_SPLIT_PARAMETERS = frozenset(
    {
        "split", "mode", "subset", "phase", "partition", "image_set", "data_type", "set", "stage",
        "set_name", "set_type", "part", "flag", "type", "url", "dataset_type", "fold", "data_split",
    }
)  # fmt: skip
_TRAIN_FLAGS = frozenset({"train", "is_train", "training", "is_training", "istrain"})
_EVALUATION_FLAGS = frozenset(
    {"test", "is_test", "val", "is_val", "validation", "valid", "is_valid", "is_eval", "testing"}
)
_TRAIN_IS_SECOND = frozenset({"MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100"})
_STREAMS = ("torch.utils.data.IterableDataset", "torch.utils.data.ChainDataset", "webdataset.")
_RANDOM_TENSORS = frozenset({"torch.randn", "torch.rand", "torch.randint"})
_UNSEEN_ORDER = ("torch.utils.data.random_split",)


def purpose_of_dataset(loader: Loader) -> Purpose | None:
    """Which part of the data a loader walks; None where nothing, or not everything, says so."""
    given = loader.argument("dataset")
    expression = loader.expression("dataset")
    if loader.is_renamed:
        found = {_purpose_beyond_names_in(loader, option) for option in options(given)}
    else:
        found = {_purpose(option, expression) for option in options(given)}
    return found.pop() if len(found) == 1 else None


def split_of(value: Value) -> Purpose | None:
    """The part of the data that a dataset's constructor is asked for: ``train=False``, say."""
    if not isinstance(value, (Object, Instance)) or not isinstance(value.node, ast.Call):
        return None
    found = _asked_for(value, value.node)
    return found.pop() if len(found) == 1 else None


def is_stream(value: Value) -> bool:
    """Whether a dataset has an order of its own that a loader cannot shuffle."""
    if isinstance(value, Object):
        asked = value.keywords.get("streaming")
        streams = isinstance(asked, Constant) and asked.value is True
        return streams or value.dotted.startswith(_STREAMS)
    return isinstance(value, Instance) and any(
        name is not None and name.startswith(_STREAMS) for name in value.definition.external_bases()
    )


def is_random_part(value: Value) -> bool:
    """Whether a dataset came out of ``random_split``: its order is random, if always the same."""
    parent = value.parent if isinstance(value, Unknown) else value
    return isinstance(parent, Object) and parent.dotted.startswith(_UNSEEN_ORDER)


def is_made_up(value: Value) -> bool:
    """Whether a dataset holds random numbers: data for a dry run, in no order and of no kind."""
    return (
        isinstance(value, Object)
        and value.dotted == "torch.utils.data.TensorDataset"
        and any(
            isinstance(item, Object) and item.dotted in _RANDOM_TENSORS
            for item in value.arguments[:1]
        )
    )


def draws_at_random(value: Value) -> bool:
    """Whether a dataset does not care which sample it is asked for, and picks one itself."""
    if not isinstance(value, Instance):
        return False
    method = value.definition.method("__getitem__")
    if method is None or len(method.node.args.args) != 2:
        return False
    index = method.node.args.args[1].arg
    used = method.file.index.nodes_in(method.node, ast.Name)
    return all(name.id != index for name in used) and bool(
        re.search(r"rand|choice|sample|rng", method.file.segment(method.node))
    )


def _purpose(value: Value, expression: ast.expr | None) -> Purpose | None:
    asked, named = split_of(value), purpose_of_names([value.hint])
    if asked is not None and isinstance(value, Instance) and named not in (None, asked):
        return None
    if asked is not None:
        return asked
    spelled = (
        expression if isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript)) else None
    )
    by_spelling = purpose_of_names([ast.unparse(spelled)]) if spelled is not None else None
    return by_spelling or named


def _purpose_beyond_names_in(loader: Loader, value: Value) -> Purpose | None:
    """Of a dataset in a helper that has one name for all it is asked to make: by the others."""
    index, made = loader.file.index, getattr(value, "node", None)
    is_local = made in index.parents and (
        index.enclosing_function(made) is index.enclosing_function(loader.call)
    )
    return split_of(value) if is_local else _purpose(value, None)


def _asked_for(value: Object | Instance, made: ast.Call) -> set[Purpose]:
    flags = {item for keyword in made.keywords if (item := _flag(keyword, value)) is not None}
    words = list(value.arguments)
    if isinstance(value, Object):
        words += [item for name, item in value.keywords.items() if name in _SPLIT_PARAMETERS]
        if value.dotted.rpartition(".")[2] in _TRAIN_IS_SECOND and len(value.arguments) > 1:
            flags |= _as_flag(value.arguments[1])
    found = {
        _WORDS[str(item.value)]
        for item in words
        if isinstance(item, Constant) and str(item.value) in _WORDS
    }
    return flags | found


def _flag(keyword: ast.keyword, value: Object | Instance) -> Purpose | None:
    """``train=False`` and ``is_test=True``; where a variable is given, what it holds."""
    given: object = None
    if isinstance(keyword.value, ast.Constant):
        given = keyword.value.value
    elif isinstance(value, Object) and keyword.arg is not None:
        held = value.keywords.get(keyword.arg)
        given = held.value if isinstance(held, Constant) else None
    if not isinstance(given, bool):
        return None
    if keyword.arg in _TRAIN_FLAGS:
        return Purpose.TRAINING if given else Purpose.EVALUATION
    return Purpose.EVALUATION if keyword.arg in _EVALUATION_FLAGS and given else None


def _as_flag(value: Value) -> set[Purpose]:
    if not isinstance(value, Constant) or not isinstance(value.value, bool):
        return set()
    return {Purpose.TRAINING if value.value else Purpose.EVALUATION}
