from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.training import is_optimizer_class, looks_like_optimizer
from trainlint.analysis.receivers import last_name
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import ARGUMENTS, FURTHER_ARGUMENTS, identifier, identifier_like, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_MAKES_ANOTHER = frozenset(
    {
        "to", "cuda", "half", "double", "bfloat16", "type", "clone", "view",
        "reshape", "unsqueeze", "squeeze", "expand", "repeat", "mul", "div", "t",
        "transpose", "permute", "xpu",
    }
)  # fmt: skip
_LEAF_FACTORIES = frozenset(
    {
        "torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty", "torch.full",
        "torch.tensor", "torch.normal", "torch.randn_like", "torch.zeros_like", "torch.ones_like",
        "torch.autograd.Variable",
    }
)  # fmt: skip
# How the scout knows that something is done to what a call returns: before it, or after.
_OPERATOR = rb"[*/+\-@%]"
_USED = rb"\s*(?:\.|" + _OPERATOR + rb")"
_DERIVED = pattern(
    rb"Parameter\s*(?:as\b|" + ARGUMENTS + _USED + rb"|(?=\()(?!" + ARGUMENTS + rb"))"
)
_OPERAND = pattern(_OPERATOR + rb"\s*[\w.]*Parameter\s*\(")
_ASKS = pattern(rb"requires_grad\s*=\s*True\b")
_LEAF_DERIVED = pattern(
    rb"requires_grad\s*=\s*True\b" + FURTHER_ARGUMENTS + rb"(?:\)" + _USED + rb"|#)"
)
_LEAF_OPERAND = pattern(_OPERATOR + rb"\s*[\w.]+\((?s:.{0,400}?)requires_grad\s*=\s*True\b")


@dataclass(frozen=True)
class _Derived:
    """``outer`` is computed from the leaf that ``leaf`` makes."""

    outer: ast.expr
    leaf: ast.Call


class ParameterMovedNonleaf(Rule):
    """The result of an operation on a new parameter is kept instead of the parameter.

    ## What it does
    Reports `nn.Parameter(...).to(device)`, `nn.Parameter(...) * scale` and the like that become an
    attribute of a module or go to an optimizer, and the same with
    `torch.randn(..., requires_grad=True)`.

    ## Why is this bad?
    The result is a plain tensor with a history. As an attribute it is no parameter: missing in
    `parameters()` and `state_dict()`, and never trained. An optimizer refuses it, and its `.grad`
    stays None.

    ## Example
    ```python
    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self, width, device):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width)).to(device)

        def forward(self, x):
            return x * self.weight
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self, width, device):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width).to(device))

        def forward(self, x):
            return x * self.weight
    ```

    ## Fix safety
    The fix is safe: it does the operation first and makes a parameter of the result.

    ## When not to use
    Parameters with `requires_grad=False`, and results that are only passed on, are not reported.

    ## References
    - [torch.nn.Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html)
    """

    code = "TLN005"
    severity = Severity.ERROR
    scout = identifier_like(rb"Parameter") & (_DERIVED | _OPERAND) | (
        identifier("requires_grad") & _ASKS & (_LEAF_DERIVED | _LEAF_OPERAND)
    )
    help = "do the operation inside: `nn.Parameter(x.to(device))`, or move the whole module"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in file.nodes(ast.Call):
            is_parameter = file.qualified(call.func) == "torch.nn.Parameter"
            if not is_parameter and not _is_leaf_tensor(file, call):
                continue
            found = _derived(file, call)
            if found is None or _has_no_gradient(call):
                continue
            kept = is_parameter and _becomes_attribute(file, found.outer)
            if kept or _is_wanted_as_leaf(file, found.outer):
                yield self.report(
                    found.outer,
                    "this is no longer the parameter but a tensor computed from it: "
                    "it is not registered and not trained"
                    if is_parameter
                    else "this is no leaf any more: no optimizer takes it, its `.grad` stays None",
                    repair=_repair(found) if is_parameter else None,
                )


def _is_leaf_tensor(file: FileModel, call: ast.Call) -> bool:
    asks = any(
        item.arg == "requires_grad" and isinstance(item.value, ast.Constant) and item.value.value
        for item in call.keywords
    )
    return bool(asks) and file.qualified(call.func) in _LEAF_FACTORIES


def _has_no_gradient(call: ast.Call) -> bool:
    given = [item.value for item in call.keywords if item.arg == "requires_grad"] + call.args[1:2]
    return any(isinstance(item, ast.Constant) and not item.value for item in given)


def _derived(file: FileModel, leaf: ast.Call) -> _Derived | None:
    """The outermost operation on a leaf: method calls and arithmetic."""
    outer: ast.expr = leaf
    while True:
        parent = file.index.parents.get(outer)
        if isinstance(parent, ast.BinOp):
            outer = parent
            continue
        call = file.index.parents.get(parent) if isinstance(parent, ast.Attribute) else None
        if not isinstance(call, ast.Call) or call.func is not parent:
            break
        assert isinstance(parent, ast.Attribute)
        if parent.attr not in _MAKES_ANOTHER:
            return None
        outer = call
    return _Derived(outer, leaf) if outer is not leaf else None


def _target(file: FileModel, value: ast.expr) -> ast.expr | None:
    statement = file.index.parents.get(value)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0]
    return statement.target if isinstance(statement, ast.AnnAssign) else None


def _becomes_attribute(file: FileModel, value: ast.expr) -> bool:
    """``self.weight = ...`` in a class that is a module, or may be one."""
    target = _target(file, value)
    owner = file.enclosing_class(value)
    if not isinstance(target, ast.Attribute) or owner is None:
        return False
    is_self = isinstance(target.value, ast.Name) and target.value.id == "self"
    return is_self and (owner.is_module or owner.has_unknown_base())


def _is_wanted_as_leaf(file: FileModel, value: ast.expr) -> bool:
    """Whether a variable of it goes to an optimizer, or its ``.grad`` is read."""
    target = _target(file, value)
    if not isinstance(target, ast.Name):
        return False
    bound = file.index.bindings(target.id, file.index.scope(target))
    if [item for item in bound if not _is_changed_in_place(file, item)] != [target]:
        return False
    reads = [
        node
        for node in file.nodes(ast.Name)
        if node.id == target.id
        and isinstance(node.ctx, ast.Load)
        and file.index.bindings(node.id, file.index.scope(node)) is bound
    ]
    attributes = {
        parent.attr
        for node in reads
        if isinstance(parent := file.index.parents.get(node), ast.Attribute)
    }
    if "retain_grad" in attributes:
        return False
    return "grad" in attributes or any(_goes_to_optimizer(file, node) for node in reads)


def _is_changed_in_place(file: FileModel, bound: ast.AST) -> bool:
    return isinstance(file.index.parents.get(bound), ast.AugAssign)


def _goes_to_optimizer(file: FileModel, node: ast.expr) -> bool:
    current: ast.AST = node
    while isinstance(current, (ast.Name, ast.List, ast.Tuple, ast.Dict, ast.keyword)):
        current = file.index.parents[current]
    if not isinstance(current, ast.Call):
        return False
    dotted = file.qualified(current.func)
    if dotted is not None:
        return is_optimizer_class(dotted)
    return looks_like_optimizer(last_name(current.func)) and bool(current.args)


def _repair(found: _Derived) -> Repair | None:
    leaf = found.leaf
    if not leaf.args or isinstance(leaf.args[0], ast.Starred):
        return None
    data = leaf.args[0]

    def do_it_inside(editor: Editor) -> None:
        inner = editor.source(data)
        if not isinstance(data, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            inner = f"({inner})"
        changed = editor.source(found.outer).replace(editor.source(leaf), inner, 1)
        others: list[ast.expr | ast.keyword] = [*leaf.args[1:], *leaf.keywords]
        rest = [editor.source(item) for item in others]
        editor.replace(found.outer, f"{editor.source(leaf.func)}({', '.join([changed, *rest])})")

    return Repair("Make the parameter of the result", Applicability.SAFE, do_it_inside)
