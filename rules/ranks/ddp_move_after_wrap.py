from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.blocks import runs_before
from trainlint.analysis.receivers import unchained
from trainlint.analysis.wrapping import Wrapping, is_bound_between, wrappings
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import part_of_identifier

_MOVES = frozenset({"to", "cuda", "cpu", "half", "float", "double", "bfloat16", "to_empty", "xpu"})
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


class DdpMoveAfterWrap(Rule):
    """A model is moved, cast or rebuilt after it was wrapped in DDP.

    ## What it does
    Reports `.to()`, `.cuda()`, `.cpu()`, `.half()` and the like on a model that is already inside
    `DistributedDataParallel`, and layers that are put into it afterwards. A last `.cpu()` before
    the weights are written is fine, and so is a move that repeats one from before the wrapping.

    ## Why is this bad?
    DDP lays out its gradient buckets and registers its hooks for the parameters as they are when
    it is made. Parameters that move, change type or are replaced afterwards may be left out: each
    process then trains a model of its own.

    ## Example
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def build(model, rank):
        model = DistributedDataParallel(model)
        return model.to(rank)
    ```

    ## Use instead
    ```python
    from torch.nn.parallel import DistributedDataParallel

    def build(model, rank):
        model = model.to(rank)
        return DistributedDataParallel(model, device_ids=[rank])
    ```

    ## References
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    """

    code = "TLR002"
    severity = Severity.ERROR
    scout = part_of_identifier("DistributedDataParallel")
    help = "build, convert and move the model first, and wrap it last"

    def check(self, file: FileModel) -> Iterator[Report]:
        for wrapping in wrappings(file):
            for move in _moves_after(file, wrapping):
                yield self.report(
                    move,
                    f"the model is already inside DDP (line {wrapping.call.lineno}): wrap last",
                )
            for layer in _layers_put_in(file, wrapping):
                yield self.report(
                    layer,
                    "this layer comes after DDP was made "
                    f"(line {wrapping.call.lineno}) and is not kept in step across processes",
                )


def _moves_after(file: FileModel, wrapping: Wrapping) -> Iterator[ast.Call]:
    statement = file.index.statement(wrapping.call)
    names = _names(wrapping)
    for call in file.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _MOVES:
            continue
        receiver = ast.unparse(function.value).removesuffix(".module")
        is_chained = function.value is wrapping.call
        is_later = receiver in names and runs_before(file, wrapping.call, call)
        if not (is_chained or is_later) or _is_repeated(file, wrapping, call):
            continue
        if is_later and is_bound_between(file, names[receiver], statement, call):
            continue
        if function.attr != "cpu" or _is_used_again(file, call, receiver):
            yield call


def _names(wrapping: Wrapping) -> dict[str, ast.expr]:
    """Under which names the wrapped model can be reached, if the code goes on using them."""
    found = [wrapping.wrapper, wrapping.model]
    return {
        ast.unparse(name): name for name in found if isinstance(name, (ast.Name, ast.Attribute))
    }


def _is_repeated(file: FileModel, wrapping: Wrapping, move: ast.Call) -> bool:
    """Whether the model was moved to the same place before it was wrapped."""
    assert isinstance(move.func, ast.Attribute)
    asked = (move.func.attr, *map(ast.unparse, move.args), *map(ast.unparse, move.keywords))
    return any(
        isinstance(call.func, ast.Attribute)
        and (call.func.attr, *map(ast.unparse, call.args), *map(ast.unparse, call.keywords))
        == asked
        and (runs_before(file, call, wrapping.call) or call in set(ast.walk(wrapping.call)))
        for call in file.nodes(ast.Call)
        if call is not move
    )


def _is_used_again(file: FileModel, move: ast.Call, receiver: str) -> bool:
    """Whether a model that went to the CPU comes back, or a loop goes around to it."""
    node: ast.AST | None = file.index.parents.get(move)
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(node, _LOOPS):
            return True
        node = file.index.parents.get(node)
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("to", "cuda")
        and ast.unparse(call.func.value).removesuffix(".module") == receiver
        and runs_before(file, move, call)
        for call in file.nodes(ast.Call)
    )


def _layers_put_in(file: FileModel, wrapping: Wrapping) -> Iterator[ast.Assign]:
    """``model.module.head = nn.Linear(...)`` after the wrapping."""
    if not isinstance(wrapping.wrapper, (ast.Name, ast.Attribute)):
        return
    inside = ast.unparse(wrapping.wrapper) + ".module."
    for statement in file.nodes(ast.Assign):
        is_layer = (
            isinstance(made := unchained(statement.value), ast.Call)
            and (file.qualified(made.func) or "").startswith("torch.nn.")
            and any(ast.unparse(target).startswith(inside) for target in statement.targets)
        )
        if is_layer and runs_before(file, wrapping.call, statement):
            yield statement
