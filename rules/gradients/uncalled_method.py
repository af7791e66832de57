from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.training import looks_like_loss_result
from trainlint.analysis.receivers import assigned_values, last_name, receiver_role
from trainlint.analysis.roles import Role
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

_ANY = frozenset(Role)
# Whose method each is; the methods that only torch has are taken at their name.
_METHODS = {
    "zero_grad": (_ANY, "gradients add up over iterations"),
    "backward": (_ANY, "no gradients are computed"),
    "step": (
        frozenset({Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER}),
        "nothing is updated",
    ),
    "update": (frozenset({Role.SCALER}), "the loss scale stays as it is"),
    "eval": (frozenset({Role.MODULE}), "dropout and batch norm stay in train mode"),
    "train": (frozenset({Role.MODULE}), "the model stays in the mode that it is in"),
    "cuda": (frozenset({Role.MODULE}), "the model stays where it is"),
}
_NEEDS_ARGUMENT = frozenset({"ReduceLROnPlateau", "LBFGS"})
_READERS = frozenset({"append", "add_scalar", "format", "print", "float", "round", "str"})


class UncalledMethod(Rule):
    """A method of the training loop is named but not called.

    ## What it does
    Reports statements such as `optimizer.zero_grad`, `loss.backward` or `model.eval` without
    parentheses, and `loss.item` where a number is meant: appended, printed, added or formatted.

    ## Why is this bad?
    A statement that only names a method does nothing, and Python says nothing. Gradients pile up,
    weights stay as they were, dropout stays on in validation. A list of `loss.item` keeps the
    methods and, with them, every graph.

    ## Example
    ```python
    def train(model, optimizer, loader, criterion):
        for x, y in loader:
            optimizer.zero_grad
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Use instead
    ```python
    def train(model, optimizer, loader, criterion):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety
    The fix is safe: it adds the parentheses, where the method needs no argument.
    """

    code = "TLG016"
    severity = Severity.ERROR
    scout = pattern(
        rb"\.(?:" + "|".join(_METHODS).encode() + rb")[ \t\f]*(?:[;#)\\\r\n]|\Z)"
    ) | identifier("item") & pattern(rb"\.item\b(?!\s*\()")
    help = "add the parentheses"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for statement in file.nodes(ast.Expr):
            named = statement.value
            if (
                isinstance(named, ast.Attribute)
                and named.attr in _METHODS
                and _is_method_of_training(file, named)
                and not _is_a_probe(file, statement)
            ):
                yield self._report(file, named, f"so {_METHODS[named.attr][1]}")
        for named in file.nodes(ast.Attribute):
            if (
                named.attr == "item"
                and looks_like_loss_result(last_name(named.value))
                and _is_used_as_number(file, named)
            ):
                yield self._report(file, named, "so this is the method, not the number")

    def _report(self, file: FileModel, named: ast.Attribute, consequence: str) -> Report:
        return self.report(
            named,
            f"`{ast.unparse(named)}` is not called, {consequence}",
            repair=None
            if _needs_argument(file, named)
            else Repair("Call the method", Applicability.SAFE, lambda editor: editor.call(named)),
        )


def _is_method_of_training(file: FileModel, named: ast.Attribute) -> bool:
    roles, _ = _METHODS[named.attr]
    role, known = receiver_role(file, named.value)
    if roles is _ANY:
        return True
    is_self = isinstance(named.value, ast.Name) and named.value.id == "self"
    return role in roles and (known or not is_self)


def _is_a_probe(file: FileModel, statement: ast.Expr) -> bool:
    """Whether the attribute is only looked up on purpose, to see whether that raises."""
    around = file.index.parents.get(statement)
    if isinstance(around, ast.Try):
        return any(
            handler.type is not None and "AttributeError" in ast.unparse(handler.type)
            for handler in around.handlers
        )
    return isinstance(around, ast.With) and any(
        "raises" in ast.unparse(item.context_expr) for item in around.items
    )


def _is_used_as_number(file: FileModel, named: ast.Attribute) -> bool:
    parent = file.index.parents.get(named)
    if isinstance(parent, ast.Call):
        return named is not parent.func and last_name(parent.func) in _READERS
    return isinstance(parent, (ast.Expr, ast.AugAssign, ast.BinOp, ast.FormattedValue))


def _needs_argument(file: FileModel, named: ast.Attribute) -> bool:
    if named.attr != "step":
        return False
    role, _ = receiver_role(file, named.value)
    made = [
        last_name(value)
        for value in assigned_values(file, named.value)
        if isinstance(value, ast.Call)
    ]
    unclear = role is Role.SCHEDULER and not made and "ReduceLROnPlateau" in file.source.text
    return role is Role.SCALER or unclear or bool(_NEEDS_ARGUMENT.intersection(made))
