from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.best_scores import (
    PICKS_BEST,
    Pick,
    constant_value,
    direction,
    is_best,
    is_in_body,
    never_passes,
    picks,
    stores,
)
from trainlint.analysis.blocks import loop_around
from trainlint.analysis.knowledge.training import (
    looks_like_loader,
    sounds_like_evaluation,
    speaks_of_training,
)
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, part_of_identifier

_LINES_ABOVE = 3


class BestCheckpointWrongCompare(Rule):
    """The best epoch is picked the wrong way around, or the best score is not kept up.

    ## What it does
    Reads comparisons with a best score that decide what to save, and reports those that keep the
    higher loss or the lower accuracy, start from a value that nothing beats, never store the new
    best score, start anew in every epoch, or decide after each batch of a validation.

    ## Why is this bad?
    The saved checkpoint is the worst one, the last one, or none at all, and early stopping stops at
    the wrong time.

    ## Example
    ```python
    import torch

    def fit(model, epochs, train, validate):
        best_loss = 0
        for _ in range(epochs):
            train(model)
            val_loss = validate(model)
            if val_loss < best_loss:
                best_loss = val_loss
                torch.save(model.state_dict(), "best.pt")
    ```

    ## Use instead
    ```python
    import torch

    def fit(model, epochs, train, validate):
        best_loss = float("inf")
        for _ in range(epochs):
            train(model)
            val_loss = validate(model)
            if val_loss < best_loss:
                best_loss = val_loss
                torch.save(model.state_dict(), "best.pt")
    ```

    ## When not to use it
    Where the name of a score misleads: a `loss` that is better when higher.

    ## References
    - [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
    """

    code = "TLE005"
    severity = Severity.ERROR
    scout = identifier("torch") & part_of_identifier("save", "state_dict", "deepcopy") & PICKS_BEST
    help = "start from the worst value, compare the way the metric improves, store the new best"

    def check(self, file: FileModel) -> Iterator[Report]:
        if not self.scout.suspects(file.source.glance):
            return
        for pick in picks(file):
            wrong = _what_is_wrong(file, pick)
            if wrong is not None:
                yield self.report(pick.comparison, wrong)
        for call in file.nodes(ast.Call):
            wrong = _wrong_extreme(file, call)
            if wrong is not None:
                yield self.report(call, wrong)


def _what_is_wrong(file: FileModel, pick: Pick) -> str | None:
    """What is wrong with a pick, in words; None where nothing certainly is."""
    way = direction(file, pick.score, pick.best)
    score, best = ast.unparse(pick.score), ast.unparse(pick.best)
    if way is not None and way != pick.picks and not _says_so(file, pick):
        return f"keeps the {pick.picks} `{score}`, which is better when {way}"
    initial = _only_initial_value(file, pick)
    if initial is not None and pick.is_alone and never_passes(initial, pick.picks, way):
        return f"`{best}` starts at {initial:g}: no `{score}` is {pick.picks}"
    if _is_never_updated(file, pick):
        return f"`{best}` keeps its first value: every `{score}` on the same side of it is saved"
    if _starts_anew(file, pick):
        return f"`{best}` starts anew on each lap of the loop: every `{score}` is the best one"
    if _decides_within_validation(file, pick):
        return f"`{score}` is compared after each batch: a lucky first batch makes the best model"
    return None


def _says_so(file: FileModel, pick: Pick) -> bool:
    """Whether a comment says that what is kept is better: ``# lower is better``."""
    last = pick.statement.lineno
    lines = file.source.lines[max(last - 1 - _LINES_ABOVE, 0) : last]
    said = re.compile(rf"{pick.picks}\s+(is|=|the)\s+better", re.IGNORECASE)
    return any(said.search(line.partition("#")[2]) for line in lines)


def _only_initial_value(file: FileModel, pick: Pick) -> float | None:
    """The constant that the best score starts from, if all starts agree on it."""
    values = [item.value for item in _starts(file, pick)]
    found = {constant_value(value) for value in values}
    return found.pop() if len(found) == 1 else None


def _starts(file: FileModel, pick: Pick) -> list[ast.Assign | ast.AnnAssign]:
    """The assignments of the best score that are not the keeping of a better one."""
    kept = set(ast.walk(pick.statement))
    return [
        item
        for item in stores(file, pick)
        if isinstance(item, (ast.Assign, ast.AnnAssign)) and item not in kept
    ]


def _is_never_updated(file: FileModel, pick: Pick) -> bool:
    """Saved in a loop though the best score is assigned once, before it."""
    loop = loop_around(file, pick.statement)
    if loop is None or not pick.saves or not isinstance(pick.best, ast.Name) or not pick.is_alone:
        return False
    found, inside = stores(file, pick), set(ast.walk(loop))
    is_fixed = len(found) == 1 and found[0] not in inside and isinstance(found[0], ast.Assign)
    bound = file.index.bindings(pick.best.id, file.index.scope(pick.best))
    start = found[0].value if is_fixed and isinstance(found[0], ast.Assign) else None
    return is_fixed and len(bound) == 1 and constant_value(start) is not None


def _starts_anew(file: FileModel, pick: Pick) -> bool:
    loop = loop_around(file, pick.statement)
    if (
        loop is None
        or not isinstance(pick.statement, ast.If)
        or not pick.saves
        or not pick.is_alone
    ):
        return False
    starts = _starts(file, pick)
    return (
        bool(starts)
        and is_in_body(file, pick.statement, loop)
        and all(
            is_in_body(file, item, loop) and constant_value(item.value) is not None
            for item in starts
        )
        and all(item.lineno < pick.statement.lineno for item in starts)
    )


def _decides_within_validation(file: FileModel, pick: Pick) -> bool:
    """The model is saved in the loop over the batches of one validation."""
    loop = loop_around(file, pick.statement)
    if not isinstance(loop, ast.For) or not pick.saves or not pick.updates:
        return False
    walked = [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(loop.iter)
        if isinstance(node, (ast.Name, ast.Attribute))
    ]
    is_validation = any(looks_like_loader(name) and sounds_like_evaluation(name) for name in walked)
    return is_validation and not any(map(speaks_of_training, walked))


def _wrong_extreme(file: FileModel, call: ast.Call) -> str | None:
    """``best_loss = max(best_loss, loss)``."""
    statement = file.index.parents.get(call)
    name = file.qualified(call.func)
    if name not in ("builtins.max", "builtins.min") or len(call.args) != 2:
        return None
    if not isinstance(statement, ast.Assign) or not is_best(statement.targets[0]):
        return None
    target = statement.targets[0]
    others = [item for item in call.args if ast.unparse(item) != ast.unparse(target)]
    if len(others) != 1:
        return None
    way = direction(file, others[0], target)
    kept = "higher" if name == "builtins.max" else "lower"
    if way is None or way == kept:
        return None
    return f"keeps the {kept} `{ast.unparse(others[0])}`, which is better when {way}"
