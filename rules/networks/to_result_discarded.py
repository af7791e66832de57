from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.frameworks import imports_framework
from trainlint.analysis.spelling import is_name_chain
from trainlint.analysis.tensor_expressions import is_tensor
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import ARGUMENTS, Scout, identifier, statement_like

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_RETURN_ANOTHER = frozenset(
    {
        "to", "cuda", "cpu", "float", "half", "double", "long", "int", "bool", "bfloat16", "type",
        "contiguous", "squeeze", "unsqueeze", "view", "reshape", "permute", "transpose", "flatten",
        "clamp", "div", "mul", "add", "sub", "detach", "clone", "repeat", "expand", "masked_fill",
    }
)  # fmt: skip
_ONLY_TENSORS_HAVE = frozenset({"contiguous", "unsqueeze", "masked_fill"})
_TRANSFORMS = ("torchvision.transforms.", "albumentations.")
_METHOD = rb"(?:\w+\.)+(?:" + "|".join(sorted(_RETURN_ANOTHER)).encode() + rb")"
_OWN_BATCHES = ("torch_geometric", "dgl", "transformers")


def _thrown_away(name: bytes) -> Scout:
    """A statement that is a call, or that has arguments that cannot be followed."""
    return statement_like(
        rb"\(*" + name + rb"\s*(?:" + ARGUMENTS + rb"(?:\s*\.\s*\w+|\[[^\[\]]*\]|" + ARGUMENTS
        + rb")*[ \t)]*(?:[;#\r\n]|\Z)|(?=\()(?!" + ARGUMENTS + rb"))"
    )  # fmt: skip


class ToResultDiscarded(Rule):
    """A tensor is moved, cast or reshaped, and the result is thrown away.

    ## What it does
    Reports statements such as `x.to(device)`, `x.float().div(255)` and `x.contiguous()` on tensors,
    and transforms (`T.ColorJitter(...)`) that are made as a statement of their own.

    ## Why is this bad?
    Methods of tensors without a trailing underscore return a new tensor and leave the old one as it
    is: the line does nothing. A transform that nobody keeps augments nothing.

    ## Example
    ```python
    import torch

    def positions(length, device):
        index = torch.arange(length)
        index.to(device)
        return index
    ```

    ## Use instead
    ```python
    import torch

    def positions(length, device):
        index = torch.arange(length)
        index = index.to(device)
        return index
    ```

    ## Fix safety
    The fix is safe: it assigns the result to the variable that the statement starts from.

    ## When not to use
    Modules are moved in place and never reported, nor are batches that move themselves, as those of
    transformers and torch_geometric do.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code = "TLN006"
    severity = Severity.ERROR
    scout = identifier(*_RETURN_ANOTHER) & _thrown_away(_METHOD) | (
        identifier("transforms", "albumentations") & _thrown_away(rb"(?:\w+\.)*[A-Z]\w*")
    )
    help = "assign the result: `x = x.to(device)`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for statement in file.nodes(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call) or _is_shown_or_expected(file, statement):
                continue
            if (file.qualified(call.func) or "").startswith(_TRANSFORMS):
                if _is_class(call):
                    yield self.report(call, "this transform is made and thrown away")
            elif _is_discarded(file, call):
                yield self.report(
                    call,
                    f"`{_method(call)}` returns a new tensor, which is thrown away",
                    repair=_repair(statement, call),
                )


def _is_class(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return str(name)[:1].isupper()


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_discarded(file: FileModel, call: ast.Call) -> bool:
    if _method(call) not in _RETURN_ANOTHER or any(item.arg == "out" for item in call.keywords):
        return False
    root = _root(call)
    if root is None or (imports_framework(file, *_OWN_BATCHES) and not _is_label(root)):
        return False
    if _method(call) in _ONLY_TENSORS_HAVE and is_name_chain(root):
        return not _defines(file, _method(call)) and imports_framework(file, "torch")
    return is_tensor(file, root)


def _root(call: ast.Call) -> ast.expr | None:
    """``x`` of ``x.float().div(255)``; None where a method on the way changes ``x`` in place."""
    current: ast.expr = call
    while isinstance(current, ast.Call) and isinstance(current.func, ast.Attribute):
        if current.func.attr not in _RETURN_ANOTHER:
            break
        current = current.func.value
    return None if isinstance(current, ast.Call) else current


def _is_label(node: ast.expr) -> bool:
    """Labels are plain tensors, also beside inputs that move themselves."""
    return isinstance(node, ast.Name) and node.id in ("label", "labels", "target", "targets", "y")


def _defines(file: FileModel, name: str) -> bool:
    return any(function.name == name for function in file.index.functions())


def _is_shown_or_expected(file: FileModel, statement: ast.Expr) -> bool:
    """The end of a notebook's cell, and what a test or ``try`` expects to fail."""
    if statement.end_lineno in file.source.cell_end_lines:
        return True
    current: ast.AST | None = statement
    while current is not None and not isinstance(current, (ast.FunctionDef, ast.ClassDef)):
        current = file.index.parents.get(current)
        if isinstance(current, ast.Try):
            return True
        if isinstance(current, ast.With) and any(
            not isinstance(item.context_expr, ast.Call)
            or "no_grad" not in ast.unparse(item.context_expr)
            for item in current.items
        ):
            return True
    return False


def _repair(statement: ast.Expr, call: ast.Call) -> Repair | None:
    root = _root(call)
    if root is None or not is_name_chain(root):
        return None

    def assign(editor: Editor) -> None:
        editor.replace_statement(statement, f"{editor.source(root)} = {editor.source(call)}")

    return Repair("Assign the result", Applicability.SAFE, assign)
