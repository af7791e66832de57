from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.knowledge.modules import WRAPPERS
from trainlint.analysis.receivers import (
    assigned_values,
    is_plain_object,
    last_name,
    receiver_role,
    unchained,
)
from trainlint.analysis.roles import Role
from trainlint.analysis.spelling import is_name_chain
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_NETWORK = re.compile(r"model|net", re.IGNORECASE)
_LAYER = re.compile(r"layer|bn|norm|drop|^m$|mod(ule)?$|^child|block", re.IGNORECASE)


class TrainingAttrAssigned(Rule):
    """`model.training = False` instead of `model.eval()`.

    ## What it does
    Reports an assignment of `True` or `False` to the `training` attribute of a network.

    ## Why is this bad?
    The attribute belongs to that one module. The dropout and batch normalisation layers inside keep
    the mode they had, so the network still behaves as before.

    ## Example
    ```python
    def predict(model, x):
        model.training = False
        return model(x)
    ```

    ## Use instead
    ```python
    def predict(model, x):
        model.eval()
        return model(x)
    ```

    ## Fix safety
    The fix is safe: `eval()` and `train()` set the same attribute, here and in all modules inside.

    ## When not to use it
    On single layers, and in a module's own `train` method; neither is reported.

    ## References
    - [torch.nn.Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
    """

    code = "TLM006"
    severity = Severity.ERROR
    preview = True
    scout = identifier("training") & pattern(rb"\.training\s*=\s*(True|False)")
    help = "call `eval()` or `train()`, which reach the modules inside as well"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for statement in file.nodes(ast.Assign):
            target, value = statement.targets[0], statement.value
            if not (isinstance(target, ast.Attribute) and target.attr == "training"):
                continue
            if not (isinstance(value, ast.Constant) and isinstance(value.value, bool)):
                continue
            if (
                len(statement.targets) == 1
                and _is_network(file, target.value)
                and not _is_switched_too(file, target.value, value.value)
            ):
                name = ast.unparse(target)
                message = f"`{name}` is a flag of this one module, not of the layers inside"
                yield self.report(target, message, repair=_repair(statement, target))


def _is_switched_too(file: FileModel, owner: ast.expr, trains: bool) -> bool:
    """Whether the same function calls the method as well: then the flag does no harm."""
    method = ast.unparse(owner) + (".train" if trains else ".eval")
    function = file.index.enclosing_function(owner)
    return any(
        ast.unparse(call.func) == method and file.index.enclosing_function(call) is function
        for call in file.nodes(ast.Call)
    )


def _is_network(file: FileModel, owner: ast.expr) -> bool:
    """A module with others inside: neither one layer, nor the object whose own method this is."""
    if not is_name_chain(owner) or last_name(owner) in ("self", "cls"):
        return False
    role, is_known = receiver_role(file, owner)
    is_named_so = bool(_NETWORK.search(last_name(owner)))
    if _LAYER.search(last_name(owner)) or role is not Role.MODULE or not (is_known or is_named_so):
        return False
    if is_plain_object(file, owner):
        return False
    made = [unchained(value) for value in assigned_values(file, owner)]
    return not any(isinstance(value, ast.Call) and _is_layer(file, value) for value in made)


def _is_layer(file: FileModel, call: ast.Call) -> bool:
    dotted = file.qualified(call.func) or ""
    is_whole = dotted == "torch.nn.Sequential" or dotted in WRAPPERS
    return dotted.startswith("torch.nn.") and not is_whole


def _repair(statement: ast.Assign, target: ast.Attribute) -> Repair:
    assert isinstance(statement.value, ast.Constant)
    method = "train" if statement.value.value else "eval"

    def call(editor: Editor) -> None:
        editor.replace_statement(statement, f"{editor.source(target.value)}.{method}()")

    return Repair(f"call `{method}()`", Applicability.SAFE, call)
