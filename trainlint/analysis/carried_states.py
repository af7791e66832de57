"""Recurrent states that a training loop carries from one lap to the next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.definitions import ClassDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.grad_scopes import switching_scope
from trainlint.analysis.roles import unwrapped
from trainlint.analysis.trace import Event, EventKind, Loop, around, events
from trainlint.analysis.values import Instance, Object, Unknown, Value, options

_RECURRENT = frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"})
_CUTS = re.compile(r"detach|no_grad|\.data\b|repackage|\.item\(")


@dataclass(frozen=True)
class CarriedState:
    """``call`` takes the state ``names`` and gives it back; ``backward`` runs once a lap.

    ``is_pair``: the state is LSTM's pair; None where that is not known.
    """

    call: ast.Call
    names: tuple[str, ...]
    backward: ast.stmt
    is_pair: bool | None


def carried_states(file: FileModel) -> Iterator[CarriedState]:
    """All states of a file that are carried over a backward pass with their graph."""
    seen: set[ast.AST] = set()
    for run in file.runs:
        for forward in events(run.trace, EventKind.FORWARD):
            call = forward.node
            if forward.file is not file or call in seen or not isinstance(call, ast.Call):
                continue
            names = _returned_state(file, call)
            if not names or not _keeps_graph(file, forward.target):
                continue
            way = around(run.trace, forward)
            if switching_scope(way) is not None:
                continue
            for step in way:
                backward = _own_backward(file, step) if isinstance(step, Loop) else None
                if backward is not None and _is_carried(file, step, names, call):  # type: ignore[arg-type]
                    seen.add(call)
                    yield CarriedState(call, names, backward, _is_pair(forward.target))
                    break


def _returned_state(file: FileModel, call: ast.Call) -> tuple[str, ...]:
    """The names that the call is given as its second argument and assigns again."""
    statement = file.index.parents.get(call)
    if not isinstance(statement, ast.Assign) or len(call.args) != 2 or len(statement.targets) != 1:
        return ()
    target, given = statement.targets[0], call.args[1]
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return ()
    returned = target.elts[1]
    if ast.unparse(returned) != ast.unparse(given):
        return ()
    parts = returned.elts if isinstance(returned, ast.Tuple) else [returned]
    return (
        tuple(part.id for part in parts if isinstance(part, ast.Name))
        if all(isinstance(part, ast.Name) for part in parts)
        else ()
    )


def _keeps_graph(file: FileModel, network: Value | None) -> bool:
    """Whether the network is one that certainly hands back a state with its graph."""
    found = [unwrapped(item) for item in options(network)]
    return bool(found) and all(_is_recurrent(file, item) for item in found)


def _is_recurrent(file: FileModel, network: Value) -> bool:
    if isinstance(network, Object):
        return network.dotted.rpartition(".")[2] in _RECURRENT
    definition = network.definition if isinstance(network, Instance) else None
    if isinstance(network, Unknown) and network.parent is None:
        definition = _only_network_with_state(file)
    if definition is None:
        return False
    text = definition.file.segment(definition.node)
    return bool(re.search(r"LSTM|GRU|RNN", text)) and not _CUTS.search(text)


def _only_network_with_state(file: FileModel) -> ClassDefinition | None:
    """What a parameter must be, if the file has one network whose ``forward`` takes a state."""
    networks = [item for item in file.classes.values() if item.is_module]
    takes_state = [
        item
        for item in networks
        if (forward := item.method("forward")) is not None and len(forward.parameters) == 3
    ]
    return takes_state[0] if len(takes_state) == 1 else None


def _is_pair(network: Value | None) -> bool | None:
    inner = [unwrapped(item) for item in options(network)]
    kinds = {item.dotted.rpartition(".")[2] for item in inner if isinstance(item, Object)}
    return all(kind.startswith("LSTM") for kind in kinds) if kinds else None


def _own_backward(file: FileModel, loop: Loop) -> ast.stmt | None:
    """The statement of the one backward pass that each lap makes, outside of inner loops."""
    found: list[Event] = [
        event
        for event in events(loop.body, EventKind.BACKWARD)
        if not any(isinstance(item, Loop) for item in around(loop.body, event))
    ]
    if len(found) != 1 or found[0].file is not file or loop.file is not file:
        return None
    statement = file.index.statement(found[0].node)
    return statement if isinstance(loop.node, (ast.For, ast.While)) else None


def _is_carried(file: FileModel, loop: Loop, names: tuple[str, ...], call: ast.Call) -> bool:
    """Whether the state lives longer than a lap, and nothing in the loop cuts or renews it."""
    assert isinstance(loop.node, ast.stmt)
    if file.index.enclosing_function(loop.node) is not file.index.enclosing_function(call):
        return False
    if call not in set(ast.walk(loop.node)):
        return False
    own = file.index.parents[call]
    stored = (
        node
        for node in ast.walk(loop.node)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Store)
    )
    if any(file.index.statement(node) is not own for node in stored):
        return False
    statements = [
        node for node in ast.walk(loop.node) if isinstance(node, ast.stmt) and node is not loop.node
    ]
    texts = (ast.unparse(node) for node in statements if not hasattr(node, "body"))
    headers = (ast.unparse(node.iter) for node in statements if isinstance(node, ast.For))
    if any(any(name in text for name in names) and _CUTS.search(text) for text in texts):
        return False
    if any(re.search(rf"\b{re.escape(name)}\b", text) for text in headers for name in names):
        return False
    bound = file.index.names_bound_in(file.index.scope(loop.node))
    return all(
        any(getattr(item, "lineno", 0) < loop.node.lineno for item in bound.get(name, []))
        for name in names
    )
