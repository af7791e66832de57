from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.index import Function
from trainlint.analysis.spelling import spelled
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, in_block

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_DROPOUT = {
    "torch.nn.Dropout": "dropout",
    "torch.nn.Dropout1d": "dropout1d",
    "torch.nn.Dropout2d": "dropout2d",
    "torch.nn.Dropout3d": "dropout3d",
    "torch.nn.AlphaDropout": "alpha_dropout",
}
_WITH_WEIGHTS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear", "Bilinear", "LazyLinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
        "ConvTranspose2d", "ConvTranspose3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
        "Embedding", "EmbeddingBag", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell",
        "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
        "LayerNorm", "GroupNorm", "PReLU",
    )
)  # fmt: skip
_NAMES = {name.rpartition(".")[2] for name in (*_DROPOUT, *_WITH_WEIGHTS)}
_CALL = rb"\b(?=[A-Z])(?:" + "|".join(sorted(_NAMES)).encode() + rb")\s*\("
_KEEPERS = frozenset({"add_module", "register_module", "append"})
_WEIGHTLESS = frozenset({"affine", "elementwise_affine"})
_SETS_WEIGHTS = ("weight", "bias", "load_state_dict", "parameters", "eval")


class ModuleInForward(Rule):
    """A layer is made inside `forward`.

    ## What it does
    Reports layers with weights, and dropout, that a module's `forward` makes on every call.

    ## Why is this bad?
    A new layer has new random weights: nothing it does is ever learned, saved or moved to the
    device. New dropout is always in train mode, so it drops in evaluation too.

    ## Example
    ```python
    from torch import nn
    from torch.nn import functional as F

    class Head(nn.Module):
        def forward(self, x):
            x = nn.Dropout(0.5)(x)
            return F.relu(x)
    ```

    ## Use instead
    ```python
    from torch import nn
    from torch.nn import functional as F

    class Head(nn.Module):
        def forward(self, x):
            x = F.dropout(x, 0.5, training=self.training)
            return F.relu(x)
    ```

    ## Fix safety
    The fix is safe and offered for dropout that is called where it is made: the functional form
    follows the module's mode. Layers with weights have to move into `__init__` by hand.

    ## When not to use it
    Layers without weights and modes (`nn.ReLU()(x)`), layers made once (`if self.fc is None`), and
    layers whose weights `forward` sets itself are not reported.

    ## References
    - [torch.nn.functional.dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html)
    """

    code = "TLM005"
    severity = Severity.ERROR
    scout = identifier("forward") & identifier(*_NAMES) & in_block(rb"def forward\b", _CALL)
    help = "make the layer in `__init__`, or use the functional form with `training=self.training`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in file.calls(*_DROPOUT, *_WITH_WEIGHTS):
            forward = file.index.enclosing_function(call)
            if forward is None or forward.name != "forward" or not _is_modules(file, call):
                continue
            if _is_kept(file, call) or _has_no_weights(call) or _is_set_up(file, forward, call):
                continue
            name = ast.unparse(call.func)
            dropped = file.qualified(call.func) in _DROPOUT
            what = "is always in train mode" if dropped else "has new random weights"
            message = f"`{name}` is made anew in each forward pass: it {what}"
            yield self.report(call, message, repair=_repair(file, call))


def _is_modules(file: FileModel, call: ast.Call) -> bool:
    owner = file.enclosing_class(call)
    return owner is not None and owner.is_module


def _is_kept(file: FileModel, call: ast.Call) -> bool:
    """Whether the layer is stored on ``self``: made once, lazily."""
    statement = file.index.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    holds = any(not isinstance(target, ast.Name) for target in targets)
    parents = file.index.parents
    current: ast.AST = call
    while current is not statement:
        current = parents[current]
        if isinstance(current, ast.Call) and isinstance(current.func, ast.Attribute):
            holds = holds or current.func.attr in _KEEPERS
    return holds


def _has_no_weights(call: ast.Call) -> bool:
    return any(
        item.arg in _WEIGHTLESS
        and isinstance(item.value, ast.Constant)
        and item.value.value is False
        for item in call.keywords
    )


def _is_set_up(file: FileModel, forward: Function, call: ast.Call) -> bool:
    """Whether ``forward`` gives the layer weights, or puts it in a mode."""
    parent = file.index.parents[call]
    if isinstance(parent, ast.Attribute) and parent.attr in ("eval", "train"):
        return True
    statement = file.index.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
        and node.attr in (*_SETS_WEIGHTS, "train")
        for node in ast.walk(forward)
    )


def _repair(file: FileModel, call: ast.Call) -> Repair | None:
    function = _DROPOUT.get(file.qualified(call.func) or "")
    applied = file.index.parents[call]
    is_applied = isinstance(applied, ast.Call) and applied.func is call and len(applied.args) == 1
    is_plain = len(call.args) <= 1 and all(item.arg == "p" for item in call.keywords)
    forward = file.index.enclosing_function(call)
    assert forward is not None
    first = forward.args.args[0].arg if forward.args.args else ""
    if function is None or not is_applied or not is_plain or applied.keywords or first != "self":  # type: ignore[attr-defined]
        return None
    name = spelled(file, f"torch.nn.functional.{function}")
    if name is None:
        return None

    def rewrite(editor: Editor) -> None:
        assert isinstance(applied, ast.Call)
        rate = call.args[0] if call.args else (call.keywords[0].value if call.keywords else None)
        given = f", {editor.source(rate)}" if rate is not None else ""
        x = editor.source(applied.args[0])
        editor.replace(applied, f"{name}({x}{given}, training=self.training)")

    return Repair(f"use `{name}` with the module's mode", Applicability.SAFE, rewrite)
