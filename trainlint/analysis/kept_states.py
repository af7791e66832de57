"""State dicts that a variable keeps: they hold the live weights unless somebody copies them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import block_of
from trainlint.analysis.receivers import last_name, receiver_role
from trainlint.analysis.roles import Role
from trainlint.scout import identifier, pattern

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

STATE_DICT_CALL = identifier("state_dict") & pattern(rb"\.\s*state_dict\s*\(")
"""What scouts see of a kept state: models use the name more than they call the method."""
_NO_WEIGHTS = frozenset({Role.SCHEDULER, Role.SCALER, Role.LOADER, Role.SAMPLER, Role.OPTIMIZER})
_COUNTS = re.compile(
    r"engine|sampler|loader|tokeni[sz]er|callback|stop|meter|logger|timer|buffer|metric",
    re.IGNORECASE,
)
_SHALLOW = frozenset({"builtins.dict", "collections.OrderedDict", "copy.copy"})
_SAME_STORAGE = frozenset({"detach", "data"})
_MOVES = frozenset({"to", "cuda", "cpu", "to_empty"})


@dataclass(frozen=True)
class KeptState:
    """``name = model.state_dict()``: ``target`` keeps the live weights of ``model``.

    ``call`` is the ``state_dict()`` call. ``loads`` are the places that read the target.
    """

    statement: ast.Assign
    target: ast.expr
    call: ast.Call
    loads: tuple[ast.expr, ...]

    @property
    def model(self) -> ast.expr:
        """The model as the code writes it."""
        assert isinstance(self.call.func, ast.Attribute)
        return self.call.func.value


def kept_states(file: FileModel) -> Iterator[KeptState]:
    """All assignments of the file that keep the live weights of a model."""
    for statement in file.nodes(ast.Assign):
        call = live_state(file, statement.value)
        if call is None or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            kept = KeptState(statement, target, call, tuple(_loads(file, target)))
            if not _is_moved_away(file, kept):
                yield kept


def live_state(file: FileModel, value: ast.expr) -> ast.Call | None:
    """The ``state_dict()`` call whose tensors an expression still shares with the model.

    ``.copy()`` and ``dict()`` copy the dictionary, not the tensors.
    """
    if isinstance(value, ast.Dict):
        return next((found for item in value.values if (found := live_state(file, item))), None)
    if isinstance(value, ast.IfExp):
        return live_state(file, value.body) or live_state(file, value.orelse)
    if isinstance(value, ast.DictComp):
        return _live_in_comprehension(file, value)
    if isinstance(value, ast.Name):
        return _live_under_name(file, value)
    if not isinstance(value, ast.Call):
        return None
    function = value.func
    if isinstance(function, ast.Attribute) and function.attr == "state_dict":
        role, _ = receiver_role(file, function.value)
        has_weights = role not in _NO_WEIGHTS and not _COUNTS.search(last_name(function.value))
        return value if has_weights else None
    if isinstance(function, ast.Attribute) and function.attr == "copy" and not value.args:
        return live_state(file, function.value)
    if file.qualified(function) in _SHALLOW and value.args:
        return live_state(file, value.args[0])
    return None


def _live_in_comprehension(file: FileModel, value: ast.DictComp) -> ast.Call | None:
    """``{k: v for k, v in model.state_dict().items()}``, also with ``v.detach()``."""
    kept, iterated = value.value, value.generators[0].iter
    if isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute) and not kept.args:
        kept = kept.func
    if isinstance(kept, ast.Attribute) and kept.attr in _SAME_STORAGE:
        kept = kept.value
    is_items = (
        isinstance(iterated, ast.Call)
        and isinstance(iterated.func, ast.Attribute)
        and iterated.func.attr == "items"
    )
    if not isinstance(kept, ast.Name) or not is_items:
        return None
    assert isinstance(iterated, ast.Call)
    assert isinstance(iterated.func, ast.Attribute)
    return live_state(file, iterated.func.value)


def _live_under_name(file: FileModel, name: ast.Name) -> ast.Call | None:
    """A variable that is bound once, in the same function, to live weights."""
    bound = file.index.bindings(name.id, file.index.scope(name))
    if len(bound) != 1 or file.index.scope(bound[0]) is not file.index.scope(name):
        return None
    parent = file.index.parents.get(bound[0])
    if not isinstance(parent, ast.Assign) or parent.targets != [bound[0]]:
        return None
    is_itself = isinstance(parent.value, ast.Name) and parent.value.id == name.id
    return None if is_itself else live_state(file, parent.value)


def _is_moved_away(file: FileModel, kept: KeptState) -> bool:
    """Whether the model goes to another device right after its state was kept.

    Its parameters get new storage there, and the state keeps the old one for itself. So it is where
    the statement stands in a ``with`` that was given the model: that may move it for the while.
    """
    model = ast.unparse(_unmoved(kept.model))
    block = block_of(file, kept.statement)
    for statement in block[block.index(kept.statement) + 1 :]:
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and _is_move(node)
                and ast.unparse(_unmoved(node)) == model
            ):
                return True
    parent = file.index.parents[kept.statement]
    return isinstance(parent, ast.With) and any(
        model in map(ast.unparse, item.context_expr.args)
        for item in parent.items
        if isinstance(item.context_expr, ast.Call)
    )


def _is_move(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES


def _unmoved(model: ast.expr) -> ast.expr:
    """``model`` of ``model.cpu()``."""
    while isinstance(model, ast.Call) and _is_move(model):
        assert isinstance(model.func, ast.Attribute)
        model = model.func.value
    return model


def _loads(file: FileModel, target: ast.expr) -> Iterator[ast.expr]:
    """Where a variable is read: in its function, or an attribute anywhere in the file."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Name):
        bound = file.index.bindings(target.id, file.index.scope(target))
        for name in file.nodes(ast.Name):
            if name.id != target.id or not isinstance(name.ctx, ast.Load):
                continue
            is_same = file.index.bindings(name.id, file.index.scope(name)) is bound
            if is_same and not _is_bound_between(bound, target, name):
                yield name
    elif isinstance(target, ast.Attribute):
        for attribute in file.nodes(ast.Attribute):
            is_read = isinstance(attribute.ctx, ast.Load) and attribute is not target
            if is_read and attribute.attr == target.attr:
                yield attribute


def _is_bound_between(bound: list[ast.AST], first: ast.Name, second: ast.Name) -> bool:
    return any(first.lineno < getattr(other, "lineno", 0) < second.lineno for other in bound)


def restoring_call(file: FileModel, load: ast.expr) -> ast.Call | None:
    """The ``load_state_dict`` that takes a kept state, or an element of it."""
    node: ast.AST = load
    parent = file.index.parents.get(node)
    while isinstance(parent, ast.Subscript) and parent.value is node:
        node, parent = parent, file.index.parents.get(parent)
    is_argument = isinstance(parent, ast.Call) and parent.args[:1] == [node]
    if not is_argument:
        return None
    assert isinstance(parent, ast.Call)
    is_method = isinstance(parent.func, ast.Attribute) and parent.func.attr == "load_state_dict"
    return parent if is_method else None


def restores_itself(file: FileModel, kept: KeptState) -> list[ast.Call]:
    """The calls that load a kept state back into the model whose live weights it is.

    Empty where the state is used for anything else as well, or changed, or the model is another
    by then: those loads may do something. Empty too where a load follows at once.
    """
    if not isinstance(kept.target, (ast.Name, ast.Attribute)) or _is_bound_elsewhere(file, kept):
        return []
    model = _text(kept.model)
    calls = [restoring_call(file, load) for load in kept.loads]
    restoring = [call for call in calls if call is not None]
    same = [call for call in restoring if _text(_receiver(call)) == model]
    if not same or len(same) != len(calls) or _is_replaced(file, kept):
        return []
    if any(_comes_next(file, kept.statement, call) for call in same):
        return []
    return same


def _comes_next(file: FileModel, kept: ast.Assign, call: ast.Call) -> bool:
    """Whether nothing happens in between: then it is loading that is tried, not restoring."""
    block = block_of(file, kept)
    after = block[block.index(kept) + 1 :]
    return bool(after) and after[0] is file.index.statement(call)


def _is_bound_elsewhere(file: FileModel, kept: KeptState) -> bool:
    if not isinstance(kept.target, ast.Name):
        return False
    return len(file.index.bindings(kept.target.id, file.index.scope(kept.target))) > 1


def _receiver(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _text(model: ast.expr) -> str:
    return ast.unparse(model).replace(".module", "")


def _is_replaced(file: FileModel, kept: KeptState) -> bool:
    """Whether the variable that holds the model is bound again after the state was kept."""
    root = kept.model
    function = file.index.enclosing_function(kept.statement)
    stored: list[ast.expr] = [*file.nodes(ast.Name), *file.nodes(ast.Attribute)]
    return any(
        isinstance(node.ctx, ast.Store)
        and ast.unparse(node) == ast.unparse(root)
        and node.lineno > kept.statement.lineno
        and file.index.enclosing_function(node) is function
        for node in stored
        if isinstance(node, (ast.Name, ast.Attribute))
    )
