"""Losses that a loop differentiates and then keeps, graph and all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.file_model import FileModel
from trainlint.analysis.loss_expressions import differentiated_names, loss_expression
from trainlint.analysis.receivers import assigned_values, last_name
from trainlint.analysis.summing_methods import adds_up
from trainlint.analysis.trace import Event, EventKind, events

_Loop = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CUTS = frozenset({"item", "detach", "detach_", "data", "numpy", "tolist"})


@dataclass(frozen=True)
class KeptLoss:
    """``value``, made of the names ``losses``, is added to ``total`` on every lap.

    ``appended_to`` is the expression of the total if it is a list, or something like one.
    """

    value: ast.expr
    total: str
    losses: frozenset[str]
    appended_to: ast.expr | None = None


def kept_losses(file: FileModel) -> Iterator[KeptLoss]:
    """All places of a file that keep a loss after its backward pass."""
    for loop, names in _losses_of_loops(file).items():
        function = file.index.enclosing_function(loop)
        differentiated = differentiated_names(function or file.tree)
        losses = _with_sums(loop, names) - _cut(loop)
        for statement in ast.walk(loop):
            found = _addition(statement, losses) or _addition_in_method(file, statement, losses)
            if found is None or file.index.enclosing_function(statement) is not function:
                continue
            if found.appended_to is not None and not _is_list(file, found.appended_to):
                continue
            is_used = found.total in differentiated or _is_reset(loop, found, statement)
            if not is_used and not _without_gradients(file, statement, loop):
                yield found


def _losses_of_loops(file: FileModel) -> dict[_Loop, set[str]]:
    """The names of the losses that each loop calls ``backward`` on."""
    found: dict[_Loop, set[str]] = {}
    for backward in _backwards(file):
        loop, expression = _loop_around(file, backward.node), loss_expression(backward)
        if loop is not None and expression is not None:
            found.setdefault(loop, set()).update(_names(expression))
    return found


def _backwards(file: FileModel) -> Iterator[Event]:
    seen: set[ast.AST] = set()
    for run in file.runs:
        for event in events(run.trace, EventKind.BACKWARD):
            if event.file is file and event.node not in seen:
                seen.add(event.node)
                yield event


def _loop_around(file: FileModel, node: ast.AST) -> _Loop | None:
    """The innermost loop around a node, in the same function."""
    current: ast.AST | None = node
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(current, _LOOPS):
            return current
        current = file.index.parents.get(current)
    return None


def _names(expression: ast.expr) -> set[str]:
    """The names whose sum an expression is; none where it is anything else."""
    if isinstance(expression, ast.Name):
        return {expression.id}
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        return _names(expression.left) | _names(expression.right)
    return set()


def _with_sums(loop: ast.AST, names: set[str]) -> set[str]:
    """Those names, and what the loop assigns sums of them to."""
    found = set(names)
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            parts = _names(node.value)
            if len(parts) > 1 and parts <= names:
                found.add(node.targets[0].id)
    return found


def _cut(loop: ast.AST) -> set[str]:
    """The names that the loop binds to numbers, or to tensors without a graph."""
    found: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and not _has_graph(node.value):
            found |= {
                item.id
                for target in node.targets
                for item in ast.walk(target)
                if isinstance(item, ast.Name)
            }
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "detach_"
        ):
            found |= {item.id for item in ast.walk(node.func.value) if isinstance(item, ast.Name)}
    return found


def _has_graph(value: ast.AST) -> bool:
    """Whether nothing in an expression makes a number of it, or cuts the graph.

    Of what a function is given only the first counts: ``criterion(logits, labels.detach())``.
    """
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        if name == "float" and isinstance(value.func, ast.Name):
            return False
        if "reduce" in name or "gather" in name:
            return False
        return _has_graph(value.func) and all(map(_has_graph, value.args[:1]))
    if isinstance(value, ast.Attribute):
        return value.attr not in _CUTS and _has_graph(value.value)
    return all(map(_has_graph, ast.iter_child_nodes(value)))


def _addition(node: ast.AST, losses: set[str]) -> KeptLoss | None:
    """``total += loss``, ``total = total + loss`` or ``losses.append(loss)``."""
    total: ast.expr | None = None
    value: ast.expr | None = None
    appended_to: ast.expr | None = None
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        total, value = node.target, node.value
    elif (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.value, ast.BinOp)
    ):
        total, value = node.targets[0], node.value.right
        is_sum = isinstance(node.value.op, ast.Add)
        if not is_sum or ast.unparse(node.value.left) != ast.unparse(total):
            return None
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "append"
            and len(call.args) == 1
        ):
            total, value = call.func.value, call.args[0]
            appended_to = total
    if total is None or value is None or not _is_loss(value, losses):
        return None
    return KeptLoss(value, ast.unparse(total), frozenset(losses), appended_to)


def _addition_in_method(file: FileModel, node: ast.AST, losses: set[str]) -> KeptLoss | None:
    """``meter.update(loss)``, where the meter adds up what it is given."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if not call.args or not _is_loss(call.args[0], losses) or not adds_up(file, call):
        return None
    return KeptLoss(call.args[0], ast.unparse(call.func.value), frozenset(losses))


def _is_list(file: FileModel, total: ast.expr) -> bool:
    """Whether an expression holds a list as far as the file shows, and not an object of its own.

    A metric whose method is called ``append`` as well may take the number out of the tensor.
    """
    base = total
    while isinstance(base, ast.Subscript):
        base = base.value
    made = list(assigned_values(file, base))
    if base is total:
        return not any(_makes_an_object(value) for value in made)
    return any(_holds_lists(value) for value in made)


def _makes_an_object(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value)[:1].isupper()


def _holds_lists(value: ast.expr) -> bool:
    """``{"train": []}``, ``{name: [] for ...}``, ``[[], []]`` or ``defaultdict(list)``."""
    if isinstance(value, ast.Dict):
        return bool(value.values) and all(isinstance(item, ast.List) for item in value.values)
    if isinstance(value, ast.DictComp):
        return isinstance(value.value, ast.List)
    if isinstance(value, ast.ListComp):
        return isinstance(value.elt, ast.List)
    if isinstance(value, ast.List):
        return any(isinstance(item, ast.List) for item in value.elts)
    return isinstance(value, ast.Call) and any(
        isinstance(item, ast.Name) and item.id == "list" for item in value.args
    )


def _is_loss(value: ast.expr, losses: set[str]) -> bool:
    """A loss, or a loss times or divided by something."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        return _is_loss(value.left, losses) or (
            isinstance(value.op, ast.Mult) and _is_loss(value.right, losses)
        )
    return isinstance(value, ast.Name) and value.id in losses


def _is_reset(loop: ast.AST, kept: KeptLoss, statement: ast.AST) -> bool:
    """Whether the loop also assigns or empties the total, or makes it anew on each lap."""
    for node in ast.walk(loop):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node is not statement:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(ast.unparse(part) == kept.total for item in targets for part in ast.walk(item)):
                return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            f"{kept.total}.clear",
            f"{kept.total}.pop",
            f"{kept.total}.reset",
            f"{kept.total}.detach_",
        ):
            return True
        if isinstance(node, ast.Delete) and any(
            kept.total in ast.unparse(item) for item in node.targets
        ):
            return True
        if (
            isinstance(node, (ast.For, ast.comprehension))
            and node is not loop
            and ast.unparse(node.target) == kept.total
        ):
            return True
    return kept.total.split("[")[0].split(".")[0] in {
        item.id
        for item in ast.walk(getattr(loop, "target", ast.Pass()))
        if isinstance(item, ast.Name)
    }


def _without_gradients(file: FileModel, node: ast.AST, loop: ast.AST) -> bool:
    current: ast.AST | None = node
    while current is not None and current is not loop:
        if isinstance(current, ast.With):
            names = {
                file.qualified(getattr(item.context_expr, "func", item.context_expr))
                for item in current.items
            }
            if names & {"torch.no_grad", "torch.inference_mode"}:
                return True
        current = file.index.parents.get(current)
    return False
