from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.accumulation import Window, windows
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.spelling import is_name_chain
from trainlint.analysis.trace import Event, EventKind, Loop, around, events
from trainlint.analysis.values import Object, Value, elements, overlaps
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, text

if TYPE_CHECKING:
    from trainlint.fixing import Editor


_BATCHES = re.compile(r"train|batch|data", re.IGNORECASE)


class AccumTailDropped(Rule):
    """The last micro-batches of an epoch are never stepped.

    ## What it does
    Reports accumulation loops that step only where `(i + 1) % k == 0`, with `i` counted from zero
    in every epoch, when neither the condition nor the code after the loop looks after the rest.

    ## Why is this bad?
    If the number of batches is no multiple of `k`, the gradients of the last ones are thrown away,
    or leak into the first step of the next epoch. With fewer than `k` batches nothing is trained at
    all.

    ## Example
    ```python
    def train_epoch(model, loader, criterion, optimizer, k):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / k
            loss.backward()
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    def train_epoch(model, loader, criterion, optimizer, k):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / k
            loss.backward()
            if (i + 1) % k == 0 or (i + 1) == len(loader):
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Fix safety
    The fix is unsafe: the last step then uses fewer micro-batches than the others, and `len` must
    be defined for the loader.

    ## When not to use it
    Where the number of batches is known to be a multiple of `k`, or a dropped tail does not matter.

    ## References
    - [Gradient accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    """

    code = "TLG007"
    severity = Severity.WARNING
    scout = identifier("enumerate") & identifier("step") & text("%") & text(".step(")
    help = "step on the last batch as well: `or (i + 1) == len(loader)`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for window in windows(file):
            if window.is_accumulation and _counts_from_zero(window) and not _minds_the_tail(window):
                size = ast.unparse(window.size)
                message = f"the last batches, if fewer than {size}, are never stepped"
                yield self.report(window.branch.test, message, repair=_repair(window))


def _counts_from_zero(window: Window) -> bool:
    """``(i + 1) % k`` of a loop's own index, over batches that end."""
    counter, index, walked = window.counter, window.index, window.walked
    is_next = isinstance(counter, ast.BinOp) and isinstance(counter.op, ast.Add)
    if index is None or walked is None or not is_next or index not in ast.unparse(counter):
        return False
    assert isinstance(counter, ast.BinOp)
    if "1" not in (ast.unparse(counter.left), ast.unparse(counter.right)):
        return False
    loop = next(
        item for item in reversed(around(window.run.trace, window.step)) if isinstance(item, Loop)
    )
    inside = [
        part
        for item in elements(loop.iterated)
        for part in (item.arguments if isinstance(item, Object) else [item])
    ]
    return is_name_chain(walked) and any(_is_batches(part) for part in inside)


def _is_batches(value: Value) -> bool:
    return has_role(value, Role.LOADER) or bool(_BATCHES.search(value.hint))


def _minds_the_tail(window: Window) -> bool:
    parts = list(ast.walk(window.test))
    if any(isinstance(node, (ast.Or, ast.Call)) for node in parts):
        return True
    if _is_exact(window):
        return True
    is_left = any(isinstance(node, (ast.Break, ast.Return)) for node in ast.walk(window.node))
    inside = set(events(window.lap))
    later = (event for event in events(window.run.trace, EventKind.STEP) if event not in inside)
    return is_left or any(_is_same(event, window) for event in later)


def _is_exact(window: Window) -> bool:
    """Whether the function asks if the number of batches is a multiple: ``len(loader) % k``."""
    if window.walked is None:
        return False
    asked = f"len({ast.unparse(window.walked)}) % {ast.unparse(window.size)}"
    scope = window.file.index.scope(window.node)
    return any(
        ast.unparse(node) == asked and window.file.index.scope(node) is scope
        for node in window.file.nodes(ast.BinOp)
    )


def _is_same(event: Event, window: Window) -> bool:
    return overlaps(event.target, window.optimizer)


def _repair(window: Window) -> Repair | None:
    walked, test = window.walked, window.branch.test
    if walked is None or not isinstance(test, ast.Compare):
        return None
    count = f"({ast.unparse(window.counter)}) == len({ast.unparse(walked)})"

    def extend(editor: Editor) -> None:
        editor.replace(test, f"{editor.source(test)} or {count}")

    return Repair("step on the last batch as well", Applicability.UNSAFE, extend)
