from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.training import looks_like_loss_result
from trainlint.analysis.receivers import assigned_at, last_name
from trainlint.analysis.trace import EventKind, events
from trainlint.analysis.values import Tensor, Unknown, options
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier, part_of_identifier, pattern

_NEW_LEAVES = frozenset(
    {
        "torch.tensor",
        "torch.as_tensor",
        "torch.from_numpy",
        "torch.autograd.Variable",
        "torch.nn.Parameter",
        "torch.Tensor",
        "torch.FloatTensor",
        "torch.DoubleTensor",
        "torch.cuda.FloatTensor",
    }
)
_CUTS = frozenset({"detach", "detach_", "numpy", "item", "tolist"})
_FILLED_TENSORS = frozenset(
    f"torch.{name}"
    for name in (
        "randn",
        "rand",
        "zeros",
        "ones",
        "full",
        "empty",
        "zeros_like",
        "ones_like",
        "eye",
    )
)
_FREEZES = re.compile(r"requires_grad(_\(|\s*=\s*)False|freez", re.IGNORECASE)


class LossRequiresGradHack(Rule):
    """`requires_grad` is forced onto a loss whose graph was lost.

    ## What it does
    Reports `loss.requires_grad = True`, `loss.requires_grad_()` before `loss.backward()`,
    `Variable(loss, requires_grad=True)` or `torch.tensor(loss, requires_grad=True)`, and
    `backward()` on any tensor that was made anew, from computed numbers, with `requires_grad`.

    ## Why is this bad?
    It silences "element 0 of tensors does not require grad" without mending what caused it. The
    loss becomes a new leaf: `backward()` runs, no parameter gets a gradient, nothing is learned.

    ## Example
    ```python
    def step(model, criterion, optimizer, x, y):
        loss = criterion(model(x).argmax(1).float(), y)
        loss.requires_grad = True
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    def step(model, criterion, optimizer, x, y):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    ```

    ## When not to use it
    On a dummy loss that has no model behind it, as in tests of a framework.

    ## References
    - [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """

    code = "TLG017"
    severity = Severity.ERROR
    scout = (
        identifier("requires_grad", "requires_grad_")
        & part_of_identifier("backward", "loss", "Loss", "LOSS", "cost", "training_step")
        & pattern(rb"requires_grad(?:\s*=\s*True|_\s*\()")
    )
    help = (
        "find what cut the graph between the model and the loss "
        "(argmax, item, detach, .data, numpy, no_grad) and take it out"
    )

    def check(self, file: FileModel) -> Iterator[Report]:
        for node, tensor in _tensors_made_to_require_grad(file):
            if (
                _is_trained_on(file, tensor)
                and not _is_dummy(file, tensor)
                and not _is_only_where_missing(file, tensor)
                and not _keeps_graph(file, tensor)
            ):
                yield self._report(node, tensor)
        for call in file.nodes(ast.Call):
            loss = _loss_in_new_leaf(file, call)
            if loss is not None and not _is_dummy(file, loss):
                yield self._report(call, loss)
            elif loss is None and _is_new_leaf(file, call) and _is_differentiated(file, call):
                yield self._report(call, call)

    def _report(self, node: ast.AST, loss: ast.expr) -> Report:
        is_named = isinstance(loss, (ast.Name, ast.Attribute))
        what = f"`{ast.unparse(loss)}` becomes" if is_named else "the tensor that is made here is"
        return self.report(
            node,
            f"{what} a new leaf{' here' if is_named else ''}: backward runs, "
            "but no parameter gets a gradient from it",
        )


def _tensors_made_to_require_grad(file: FileModel) -> Iterator[tuple[ast.AST, ast.expr]]:
    """``x.requires_grad = True`` and ``x.requires_grad_()`` of a variable or attribute ``x``."""
    for statement in file.nodes(ast.Assign):
        for target in statement.targets:
            if (
                isinstance(target, ast.Attribute)
                and target.attr == "requires_grad"
                and _is_true(statement.value)
                and isinstance(target.value, (ast.Name, ast.Attribute))
            ):
                yield target, target.value
    for call in file.nodes(ast.Call):
        function = call.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr == "requires_grad_"
            and all(_is_true(argument) for argument in call.args)
            and isinstance(function.value, (ast.Name, ast.Attribute))
        ):
            yield call, function.value


def _is_trained_on(file: FileModel, tensor: ast.expr) -> bool:
    """Whether the same function goes on to run backward from the tensor, known by its name."""
    function = file.index.enclosing_function(tensor)
    named_as_loss = looks_like_loss_result(last_name(tensor))
    if function is not None and function.name == "training_step":
        return named_as_loss
    for call in file.nodes(ast.Call):
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "backward"
            and call.lineno >= tensor.lineno
            and file.index.enclosing_function(call) is function
            and (named_as_loss or _is_unchanged_until(file, tensor, call.func.value))
        ):
            return True
    return False


def _is_only_where_missing(file: FileModel, tensor: ast.expr) -> bool:
    """``if not loss.requires_grad:`` around it: batches that give no loss are meant to pass."""
    node: ast.AST | None = tensor
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(node, ast.If) and ".requires_grad" in ast.unparse(node.test):
            return True
        node = file.index.parents.get(node)
    return False


def _keeps_graph(file: FileModel, tensor: ast.expr) -> bool:
    """Whether backward reaches a model from there, as far as seen: asking again changes nothing.

    Where something is frozen, the graph may have no beginning, which the hack is there to hide.
    """
    if _FREEZES.search(file.source.text):
        return False
    function, text = file.index.enclosing_function(tensor), ast.unparse(tensor)
    targets = [
        option
        for run in file.runs
        for event in events(run.trace, EventKind.BACKWARD)
        if event.file is file
        and file.index.enclosing_function(event.node) is function
        and isinstance(event.node, ast.Call)
        and ast.unparse(event.node.func) == f"{text}.backward"
        for option in options(event.target)
    ]
    known = [item for item in targets if not isinstance(item, Unknown)]
    return bool(known) and all(isinstance(item, Tensor) and item.trains for item in known)


def _is_unchanged_until(file: FileModel, tensor: ast.expr, later: ast.expr) -> bool:
    """Whether a variable is used later without a new value in between."""
    return (
        isinstance(tensor, ast.Name)
        and isinstance(later, ast.Name)
        and later.id == tensor.id
        and not any(
            tensor.lineno < getattr(bound, "lineno", 0) < later.lineno
            for bound in file.index.bindings(tensor.id, file.index.scope(tensor))
        )
    )


def _loss_in_new_leaf(file: FileModel, call: ast.Call) -> ast.expr | None:
    """The loss in ``torch.tensor(loss, requires_grad=True)`` and its like."""
    requires_grad = any(
        item.arg == "requires_grad" and _is_true(item.value) for item in call.keywords
    )
    if not (requires_grad and call.args and file.qualified(call.func) in _NEW_LEAVES):
        return None
    return next(
        (
            node
            for node in ast.walk(call.args[0])
            if isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Load)
            and looks_like_loss_result(last_name(node))
            and not _is_called(file, node)
        ),
        None,
    )


def _is_new_leaf(file: FileModel, call: ast.Call) -> bool:
    """Whether an expression makes a leaf that requires gradients out of something computed."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "requires_grad_":
        made = function.value
        is_made = isinstance(made, (ast.Call, ast.Attribute)) and _is_cut(file, made)
        return is_made and all(_is_true(argument) for argument in call.args)
    requires_grad = any(
        item.arg == "requires_grad" and _is_true(item.value) for item in call.keywords
    )
    return requires_grad and _makes_leaf(file, call)


def _is_cut(file: FileModel, value: ast.expr) -> bool:
    """Whether a chain such as ``loss.detach().clone()`` has left the graph somewhere."""
    while isinstance(value, (ast.Call, ast.Attribute)):
        if isinstance(value, ast.Call):
            if _makes_leaf(file, value):
                return True
            value = value.func
        elif value.attr == "data" or value.attr in _CUTS:
            return True
        else:
            value = value.value
    return False


def _makes_leaf(file: FileModel, call: ast.Call) -> bool:
    is_maker = file.qualified(call.func) in _NEW_LEAVES
    return is_maker and bool(call.args) and not _is_made_of_nothing(file, call.args[0])


def _is_differentiated(file: FileModel, leaf: ast.Call) -> bool:
    """Whether ``backward()`` is called on the new leaf, directly or under its name."""
    if _is_only_where_missing(file, leaf):
        return False
    parent = file.index.parents.get(leaf)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "backward"
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    function = file.index.enclosing_function(leaf)
    return target is not None and any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "backward"
        and call.lineno > leaf.lineno
        and file.index.enclosing_function(call) is function
        and _is_unchanged_until(file, target, call.func.value)
        for call in file.nodes(ast.Call)
    )


def _is_called(file: FileModel, node: ast.expr) -> bool:
    parent = file.index.parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _is_dummy(file: FileModel, tensor: ast.expr) -> bool:
    """Whether what the variable holds at this place is made of constants or random numbers."""
    if not isinstance(tensor, ast.Name):
        return False
    earlier = [
        bound
        for bound in file.index.bindings(tensor.id, file.index.scope(tensor))
        if isinstance(bound, ast.Name) and bound.lineno < tensor.lineno
    ]
    value = assigned_at(file, max(earlier, key=lambda bound: bound.lineno)) if earlier else None
    return value is not None and _is_made_of_nothing(file, value)


def _is_made_of_nothing(file: FileModel, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        dotted = file.qualified(value.func)
        return dotted in _FILLED_TENSORS or (
            dotted in _NEW_LEAVES and all(_is_made_of_nothing(file, item) for item in value.args)
        )
    return not any(isinstance(node, (ast.Name, ast.Call)) for node in ast.walk(value))


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
