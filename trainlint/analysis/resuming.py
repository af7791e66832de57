"""Training that goes on from a checkpoint: what it restores, and what it starts anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import loop_around
from trainlint.analysis.checkpoint_loads import becomes_weights, bound_name, checkpoint_loads
from trainlint.analysis.receivers import (
    assigned_values,
    last_name,
    made_role,
    receiver_role,
)
from trainlint.analysis.roles import Role, by_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_COUNTER = re.compile(r"epoch|step|iter", re.IGNORECASE)
_RESUMES = re.compile(r"resum|continue_?train|\bepoch != 0|\bstart_?epoch\b", re.IGNORECASE)
_STATEFUL = (Role.OPTIMIZER, Role.SCHEDULER, Role.SCALER)
_KEYS = {
    Role.OPTIMIZER: re.compile(r"optim|(^|_)opts?(_|$)", re.IGNORECASE),
    Role.SCHEDULER: re.compile(r"sched|(^|_)lr", re.IGNORECASE),
    Role.SCALER: re.compile(r"scaler|amp", re.IGNORECASE),
}
# Follows the epoch that it is given, or that the optimizer remembers.
_REPLAYED = re.compile(
    r"last_epoch|sched\w*\.step\(\s*[\w.]*(epoch|step|iter)"
    r"|(?:^|[\s.])(?:lr_?)?sched(?:uler)?\([^()=]*\b(?:epoch|step|iter(?:ation)?)\b",
    re.MULTILINE,
)
_IS_TOLD = re.compile(r"start_?epoch|\.epoch\b|start_?step|global_?step|offset")
# Distributed checkpoints restore an optimizer by these.
_STATE_DICTS = "torch.distributed.checkpoint.state_dict."
_SETS_OPTIMIZER = (_STATE_DICTS + "set_optimizer_state_dict", _STATE_DICTS + "set_state_dict")
_LOOKS_ONLY = frozenset({"load_state_dict", "print", "len", "isinstance"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Resume:
    """A checkpoint from which training goes on; ``missing`` are the parts that start anew."""

    load: ast.Call
    missing: tuple[Role, ...]


def resumes(file: FileModel) -> Iterator[Resume]:
    """All places of a file where a checkpoint is loaded to go on with training.

    The file trains, or restores what only training has a use for: a schedule, a gradient scaler.
    """
    made = _made_parts(file)
    if Role.OPTIMIZER not in made and not _saves_optimizer(file):
        return
    made.setdefault(Role.OPTIMIZER, [])
    is_for_training = _trains(file)
    seen: set[ast.AST | None] = set()
    for load in checkpoint_loads(file):
        function = file.index.enclosing_function(load)
        if function in seen or not becomes_weights(file, load) or not _goes_on(file, load):
            continue
        seen.add(function)
        if _is_one_of_series(file, load):
            continue
        restored = _restored_parts(file, load)
        if restored is not None and (is_for_training or restored & {Role.SCHEDULER, Role.SCALER}):
            missing = tuple(
                role
                for role in _STATEFUL
                if role in made
                and role not in restored
                and not _needs_no_state(file, role, made[role])
            )
            yield Resume(load, missing)


def _made_parts(file: FileModel) -> dict[Role, list[ast.expr]]:
    """The optimizers, schedulers and scalers that the file makes."""
    found: dict[Role, list[ast.expr]] = {}
    for statement in file.nodes(ast.Assign):
        value = statement.value
        values = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        named = by_name(last_name(statement.targets[0]))
        for item in values:
            role = made_role(file, item)
            is_number = role is Role.SCHEDULER and named is not role
            if role in _STATEFUL and role is not None and not is_number:
                found.setdefault(role, []).append(item)
    return found


def _trains(file: FileModel) -> bool:
    return any(last_name(call) == "backward" for call in file.nodes(ast.Call))


def _goes_on(file: FileModel, load: ast.Call) -> bool:
    """Whether training resumes: by the condition or the path, or because it counts on."""
    if _path_names_start(file, load):
        return True
    node: ast.AST | None = load
    while node is not None and not isinstance(node, _FUNCTIONS):
        if isinstance(node, ast.If) and _RESUMES.search(ast.unparse(node.test)):
            return load not in {part for item in node.orelse for part in ast.walk(item)}
        node = file.index.parents.get(node)
    return _counts_on(file, load)


def _is_one_of_series(file: FileModel, load: ast.Call) -> bool:
    """``torch.load(path.format(epoch))`` in a loop over epochs: they are compared, not resumed."""
    loop, path = loop_around(file, load), " ".join(map(ast.unparse, load.args[:1]))
    return isinstance(loop, ast.For) and any(
        _COUNTER.search(node.id) and re.search(rf"\b{node.id}\b", path)
        for node in ast.walk(loop.target)
        if isinstance(node, ast.Name)
    )


def _path_names_start(file: FileModel, load: ast.Call) -> bool:
    """A path with the number of the epoch that a loop of the file starts at."""
    paths = [*load.args[:1]]
    paths += [value for name in _names(paths) for value in assigned_values(file, name)]
    text = " ".join(map(ast.unparse, paths))
    return any(
        _COUNTER.search(start) and re.search(rf"(?<![\w.]){re.escape(start)}(?!\w)", text)
        for start in _starts_of_loops(file)
    )


def _names(items: list[ast.expr]) -> Iterator[ast.Name]:
    return (node for item in items for node in ast.walk(item) if isinstance(node, ast.Name))


def _starts_of_loops(file: FileModel) -> Iterator[str]:
    """``opt.epoch`` of ``for epoch in range(opt.epoch, opt.n_epochs):``."""
    for loop in file.nodes(ast.For):
        call = loop.iter
        if isinstance(call, ast.Call) and last_name(call) in ("range", "trange") and call.args[1:]:
            yield ast.unparse(call.args[0])


def _counts_on(file: FileModel, load: ast.Call) -> bool:
    """``start_epoch = checkpoint["epoch"]``, and a loop that starts at a number."""
    name = bound_name(file, load)
    counters = [
        statement
        for node, key in _reads(file, load, name)
        if _COUNTER.search(key) and isinstance(statement := file.index.statement(node), ast.Assign)
    ]
    if any(_goes_on_while(file, statement) for statement in counters):
        return True
    return any(_starts_a_range(file, statement) for statement in counters)


def _starts_a_range(file: FileModel, counter: ast.Assign) -> bool:
    """``start_epoch = checkpoint["epoch"] + 1``, and somewhere ``range(start_epoch, epochs)``.

    Under another name it has to be in the same function.
    """
    name, function = last_name(counter.targets[0]), file.index.enclosing_function(counter)
    return any(
        last_name(call) in ("range", "trange")
        and len(call.args) > 1
        and _COUNTER.search(start := ast.unparse(call.args[0]))
        and (name in start or file.index.enclosing_function(call) is function)
        for call in file.nodes(ast.Call)
    )


def _goes_on_while(file: FileModel, counter: ast.Assign) -> bool:
    """``step = checkpoint["step"]``, and then ``while step < total:``."""
    target, function = counter.targets[0], file.index.enclosing_function(counter)
    return isinstance(target, ast.Name) and any(
        isinstance(loop.test, ast.Compare)
        and isinstance(loop.test.left, ast.Name)
        and loop.test.left.id == target.id
        and loop.lineno > counter.lineno
        and file.index.enclosing_function(loop) is function
        for loop in file.nodes(ast.While)
    )


def _reads(file: FileModel, load: ast.Call, name: str | None) -> Iterator[tuple[ast.AST, str]]:
    """Where the function reads keys of the checkpoint: ``["epoch"]``, ``.get("epoch")``."""
    function = file.index.enclosing_function(load)
    for use in file.nodes(ast.Name):
        if use.id != name or file.index.enclosing_function(use) is not function:
            continue
        parent = file.index.parents.get(use)
        key: ast.AST | None = None
        if isinstance(parent, ast.Subscript):
            key = parent.slice
        elif isinstance(parent, ast.Attribute) and parent.attr in ("get", "pop"):
            call = file.index.parents.get(parent)
            key = call.args[0] if isinstance(call, ast.Call) and call.args else None
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield use, key.value


def _restored_parts(file: FileModel, load: ast.Call) -> set[Role] | None:
    """The parts whose state something in the file loads; None where that cannot be told."""
    name = bound_name(file, load)
    if name is not None and _is_handed_on(file, load, name):
        return None
    found: set[Role] = {Role.OPTIMIZER} if any(file.calls(*_SETS_OPTIMIZER)) else set()
    for call in file.nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "load_state_dict":
            continue
        role, _ = receiver_role(file, call.func.value)
        if role is Role.OTHER and not _is_weights(call) and not _saves_optimizer(file):
            return None
        found.add(role)
    for _, key in _reads(file, load, name):
        found |= {role for role, pattern in _KEYS.items() if pattern.search(key)}
    text = ast.unparse(load)
    return found | {role for role, pattern in _KEYS.items() if pattern.search(text)}


def _saves_optimizer(file: FileModel) -> bool:
    """Whether the optimizer's state is saved by itself, so that nothing else holds it."""
    return any(
        last_name(call) == "state_dict"
        and isinstance(call.func, ast.Attribute)
        and receiver_role(file, call.func.value)[0] is Role.OPTIMIZER
        for call in file.nodes(ast.Call)
    )


def _is_weights(call: ast.Call) -> bool:
    """A receiver of any name that takes what is named as a model's state."""
    return bool(call.args) and bool(
        re.search(r"model|net|state_dict|weights", ast.unparse(call.args[0]))
    )


def _is_handed_on(file: FileModel, load: ast.Call, name: str) -> bool:
    """Whether the whole checkpoint goes to code that may restore more from it."""
    function = file.index.enclosing_function(load)
    mentions = [
        use
        for use in file.nodes(ast.Name)
        if use.id == name and file.index.enclosing_function(use) is function
    ]
    rebound = [
        use.lineno
        for use in mentions
        if isinstance(use.ctx, ast.Store) and use.lineno > (load.end_lineno or load.lineno)
    ]
    end = min(rebound, default=len(file.source.lines) + 1)
    for use in mentions:
        parent = file.index.parents.get(use)
        if use.lineno > end:
            continue
        if isinstance(parent, ast.Return):
            return True
        is_argument = (
            isinstance(parent, (ast.Call, ast.keyword)) and getattr(parent, "func", None) is not use
        )
        if is_argument and last_name(parent) not in _LOOKS_ONLY:  # type: ignore[arg-type]
            return True
    return False


def _needs_no_state(file: FileModel, role: Role, made: list[ast.expr]) -> bool:
    """Plain SGD has none; a schedule may be told, or replay, the epoch."""
    if role is Role.OPTIMIZER:
        return bool(made) and all(
            isinstance(item, ast.Call)
            and last_name(item) == "SGD"
            and "momentum" not in ast.unparse(item)
            for item in made
        )
    if role is not Role.SCHEDULER:
        return False
    is_told = any(_IS_TOLD.search(ast.unparse(item)) for item in made)
    return is_told or bool(_REPLAYED.search(file.source.text)) or _steps_ahead(file)


def _steps_ahead(file: FileModel) -> bool:
    """``for _ in range(start_epoch): scheduler.step()``, and nothing else in the loop."""
    return any(
        isinstance(loop.iter, ast.Call)
        and last_name(loop.iter) in ("range", "trange")
        and all(_steps_a_schedule(file, statement) for statement in loop.body)
        for loop in file.nodes(ast.For)
    )


def _steps_a_schedule(file: FileModel, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "step"
        and receiver_role(file, call.func.value)[0] is Role.SCHEDULER
    )
