"""Methods: the verbs of training, by what their receiver is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from trainlint.analysis.frameworks import framework_of
from trainlint.analysis.interpreter.conditions import choosing
from trainlint.analysis.interpreter.expressions import mix
from trainlint.analysis.interpreter.library import activated, logarithm
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.module_calls import call_module, loss_value
from trainlint.analysis.knowledge import modules, tensors, training
from trainlint.analysis.knowledge.libraries import BYSTANDERS
from trainlint.analysis.roles import (
    Role,
    by_name,
    has_role,
    of_class,
    role,
    unseen_result,
    unwrapped,
)
from trainlint.analysis.trace import Branch, EventKind, Trace
from trainlint.analysis.values import (
    Choice,
    Constant,
    Context,
    External,
    FunctionValue,
    Group,
    Instance,
    LambdaValue,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
    choice,
    contained,
    is_listed,
    options,
    without_none,
)


@dataclass(frozen=True)
class MethodCall:
    """``receiver.name(...)`` with everything evaluated."""

    machine: Machine
    receiver: Value
    name: str
    arguments: list[Value]
    keywords: dict[str, Value]
    node: ast.Call

    @property
    def everything(self) -> tuple[Value, ...]:
        """All that the callee can reach."""
        return (self.receiver, *self.arguments, *self.keywords.values())

    def argument(self, position: int, keyword: str) -> Value | None:
        """What was passed for a parameter, by position or by keyword."""
        if position < len(self.arguments):
            return self.arguments[position]
        return self.keywords.get(keyword)

    def emit(self, kind: EventKind, target: Value | None, certain: bool = True) -> None:
        """Write an event for this call."""
        self.machine.emit(kind, self.node, target, tuple(self.arguments), certain)


def call_method(
    machine: Machine,
    receiver: Value,
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
    *,
    inherited: bool = False,
) -> Value:
    """Call a method; ``inherited`` skips the project's own definition of it."""
    receiver = _behind_wrapper(without_none(receiver), name)
    found = MethodCall(machine, receiver, name, arguments, keywords, node)
    if isinstance(receiver, Instance) and not inherited:
        own = _own_method(found, receiver)
        if own is not None:
            return own
    stored = receiver.members.get(name) if isinstance(receiver, (Unknown, Object)) else None
    if isinstance(stored, (Object, Instance, FunctionValue, LambdaValue, External)):
        return _call_stored(found, stored)
    if isinstance(receiver, Choice) and _is_split(receiver, name):
        return _call_options(found, receiver)
    if isinstance(receiver, FunctionValue):
        return Unknown()
    verb = _VERBS.get(name)
    if verb is not None:
        result = verb(found)
        if result is not None:
            return result
    return _other(found)


def _call_stored(call: MethodCall, stored: Value) -> Value:
    """``args.criterion(...)``: what was kept as an attribute of a foreign object is called."""
    from trainlint.analysis.interpreter.calls import call_value

    return call_value(call.machine, stored, call.arguments, call.keywords, call.node)


def _behind_wrapper(receiver: Value, name: str) -> Value:
    """``torch.compile(model).generate()`` is the model's own method."""
    if not isinstance(receiver, Object) or receiver.dotted not in modules.WRAPPERS:
        return receiver
    inside = unwrapped(receiver)
    has_own = isinstance(inside, Instance) and inside.definition.method(name) is not None
    return inside if has_own and name not in _VERBS and name != "forward" else receiver


def _own_method(call: MethodCall, receiver: Instance) -> Value | None:
    from trainlint.analysis.interpreter.calls import call_value, run_function

    definition = receiver.definition
    if call.name == "step" and of_class(definition) is Role.OPTIMIZER:
        return None
    is_mode_switch = definition.is_module and call.name in ("train", "eval") and call.name in _VERBS
    method = definition.method(call.name)
    if method is not None and not (is_mode_switch and _is_mode_override(call, receiver)):
        if definition.is_module and call.name == "forward":
            return call_module(call.machine, receiver, call.arguments, call.keywords, call.node)
        closure = call.machine.module_environment(method.file)
        bound = FunctionValue(method, None if method.is_static else receiver, closure)
        return run_function(call.machine, bound, call.arguments, call.keywords, call.node)
    stored = receiver.members.get(call.name)
    if stored is not None and not is_mode_switch:
        return call_value(call.machine, stored, call.arguments, call.keywords, call.node)
    if call.name in _VERBS or definition.is_module:
        return None
    from trainlint.analysis.interpreter.attributes import attribute_of

    callee = attribute_of(call.machine, receiver, call.name, call.node)
    is_method = definition.has_unknown_base() or not has_role(callee, Role.MODULE)
    if isinstance(callee, Unknown) and is_method:
        return None
    return call_value(call.machine, callee, call.arguments, call.keywords, call.node)


def _is_mode_override(call: MethodCall, receiver: Instance) -> bool:
    """``train(self, mode=True)`` switches modes; ``train(self, loader)`` is a training loop."""
    method = receiver.definition.method(call.name)
    assert method is not None
    names = [parameter.arg for parameter in method.parameters[1:]]
    return (
        names in ([], ["mode"])
        and len(call.arguments) <= 1
        and method.vocabulary.isdisjoint({"backward", "zero_grad"})
    )


def _is_split(receiver: Choice, name: str) -> bool:
    """Whether the options have to be called one by one: some are objects of the project.

    Tensors each keep what they know.
    """
    may_be_tensors = all(
        isinstance(option, (Tensor, Unknown)) or _is_new_data(option) for option in receiver.options
    )
    if may_be_tensors and any(isinstance(option, Tensor) for option in receiver.options):
        return True
    return any(
        isinstance(option, Instance) and option.definition.method(name) is not None
        for option in receiver.options
    )


def _is_new_data(value: Value) -> bool:
    """What a function of torch such as ``torch.zeros`` made."""
    if not isinstance(value, Object):
        return False
    head, _, last = value.dotted.rpartition(".")
    return head == "torch" and last.islower() and last not in ("load", "compile")


def _call_options(call: MethodCall, receiver: Choice) -> Value:
    branch = Branch(call.node, [])
    results: list[Value] = []
    for option in receiver.options:
        trace: Trace = []
        with call.machine.recording(trace), call.machine.conditionally():
            results.append(
                call_method(
                    call.machine, option, call.name, call.arguments, call.keywords, call.node
                )
            )
        branch.ways.append((choosing(receiver, option), trace))
    if any(trace for _, trace in branch.ways):
        call.machine.add(branch)
    return choice(results)


def _zero_grad(call: MethodCall) -> Value:
    call.emit(EventKind.ZERO_GRAD, call.receiver, role(call.receiver)[1])
    return Constant(None)


def _step(call: MethodCall) -> Value | None:
    part, certain = role(call.receiver)
    if part is Role.SCALER:
        call.emit(EventKind.SCALER_STEP, call.receiver, certain)
        optimizer = call.argument(0, "optimizer")
        call.machine.emit(EventKind.STEP, call.node, optimizer, tuple(call.arguments), certain)
        return Constant(None)
    if part is Role.SCHEDULER:
        call.emit(EventKind.SCHEDULER_STEP, call.receiver, certain)
        return Constant(None)
    if part is Role.OPTIMIZER:
        _run_closure(call)
        call.emit(EventKind.STEP, call.receiver, certain)
        return loss_value([])
    return None


def _run_closure(call: MethodCall) -> None:
    from trainlint.analysis.interpreter.calls import call_value

    closure = call.argument(0, "closure")
    if isinstance(closure, (FunctionValue, LambdaValue)):
        call_value(call.machine, closure, [], {}, call.node)


def _named_step(call: MethodCall) -> Value | None:
    """SAM's ``first_step`` and ``second_step``, which may clear the gradients themselves."""
    if not has_role(call.receiver, Role.OPTIMIZER):
        return None
    call.emit(EventKind.STEP, call.receiver, role(call.receiver)[1])
    clears = call.argument(0, "zero_grad")
    if clears is not None and not (isinstance(clears, Constant) and not clears.value):
        call.emit(EventKind.ZERO_GRAD, call.receiver)
    return Constant(None)


def _backward(call: MethodCall) -> Value | None:
    loss = call.argument(0, "loss")
    if has_role(call.receiver, Role.ACCELERATOR):
        call.emit(EventKind.BACKWARD, loss)
    elif isinstance(call.receiver, Tensor) or _is_seed(loss):
        call.emit(EventKind.BACKWARD, call.receiver)
    else:
        return None
    return Constant(None)


def _is_seed(argument: Value | None) -> bool:
    """``loss.backward()`` takes nothing, or a gradient; an engine's ``backward`` takes the loss."""
    if argument is None or isinstance(argument, Constant):
        return True
    return isinstance(argument, Tensor) and not argument.is_loss


def _manual_backward(call: MethodCall) -> Value:
    call.emit(EventKind.BACKWARD, call.argument(0, "loss"))
    return Constant(None)


def _of_lightning(call: MethodCall) -> Value | None:
    """What a Lightning module inherits for manual optimisation.

    ``self.optimizers()`` hands out the same objects at every call; the rest changes no gradient.
    """
    receiver = call.receiver
    if not isinstance(receiver, Instance) or framework_of(receiver.definition) is None:
        return None
    return receiver.members.setdefault(f"{call.name}()", Unknown(hint=call.name))


def _train(call: MethodCall) -> Value | None:
    if not _can_switch(call):
        return None
    mode = call.argument(0, "mode")
    if mode is None or (isinstance(mode, Constant) and mode.value):
        call.emit(EventKind.TRAIN, call.receiver)
    elif isinstance(mode, Constant):
        call.emit(EventKind.EVAL, call.receiver)
    else:
        call.emit(EventKind.MODE, call.receiver)
    return call.receiver


def _eval(call: MethodCall) -> Value | None:
    if not _can_switch(call) or call.arguments:
        return None
    call.emit(EventKind.EVAL, call.receiver)
    return call.receiver


def _can_switch(call: MethodCall) -> bool:
    """Anything but an object of the project that is surely no module."""
    receiver = call.receiver
    if isinstance(receiver, Instance):
        return receiver.definition.is_module or receiver.definition.has_unknown_base()
    return not isinstance(receiver, (Tensor, Group, External))


def _set_epoch(call: MethodCall) -> Value:
    call.emit(EventKind.SET_EPOCH, call.receiver)
    return Constant(None)


def _unscale(call: MethodCall) -> Value:
    call.emit(EventKind.UNSCALE, call.argument(0, "optimizer"))
    return Constant(None)


def _update(call: MethodCall) -> Value | None:
    if not has_role(call.receiver, Role.SCALER):
        return _update_average(call)
    call.emit(EventKind.SCALER_UPDATE, call.receiver, role(call.receiver)[1])
    return Constant(None)


def _update_average(call: MethodCall) -> Value | None:
    """``ema.update(model)`` and ``AveragedModel.update_parameters(model)`` only read the model."""
    receiver = call.receiver
    is_torchs = isinstance(receiver, Object) and receiver.dotted.startswith(
        "torch.optim.swa_utils."
    )
    is_foreign = isinstance(receiver, (Object, Unknown)) and training.looks_like_average(
        receiver.hint
    )
    return Constant(None) if is_torchs or is_foreign else None


def _announce(call: MethodCall) -> Value | None:
    """What accelerate and Fabric gather, print, save and wait for changes nothing."""
    return Unknown(hint=call.name) if has_role(call.receiver, Role.ACCELERATOR) else None


def _scaler_question(call: MethodCall) -> Value | None:
    """``scaler.get_scale()`` and the like only tell something."""
    return Unknown() if has_role(call.receiver, Role.SCALER) else None


def _scale(call: MethodCall) -> Value | None:
    if not has_role(call.receiver, Role.SCALER):
        return None
    scaled = mix(*call.arguments)
    tensor = scaled if isinstance(scaled, Tensor) else Tensor()
    return Tensor(tensor.origins, tensor.modules, is_loss=True, scaler=call.receiver)


def _clip(call: MethodCall) -> Value:
    target = call.argument(0, "parameters")
    on_module = target is None or isinstance(target, Constant)
    call.emit(EventKind.CLIP, call.receiver if on_module else target)
    return Tensor()


def _parameters(call: MethodCall) -> Value | None:
    if isinstance(call.receiver, (Group, Tensor)):
        return None
    return Parameters(call.receiver, call.node)


def _state_dict(call: MethodCall) -> Value:
    return Object("state_dict", call.node, [call.receiver], call.keywords)


def _load_state_dict(call: MethodCall) -> Value:
    call.emit(EventKind.LOAD, call.receiver)
    return Unknown()


def _activation(call: MethodCall) -> Value | None:
    is_new_data = isinstance(call.receiver, Object) and call.receiver.dotted.startswith("torch.")
    if isinstance(call.receiver, (Tensor, Unknown, Choice)) or is_new_data:
        return activated([call.receiver], tensors.ACTIVATION_METHODS[call.name], call.node)
    return None


def _log(call: MethodCall) -> Value | None:
    return (
        logarithm(call.receiver, call.node) if isinstance(call.receiver, (Tensor, Choice)) else None
    )


def _zero(call: MethodCall) -> Value:
    """``p.grad.zero_()`` clears the gradient of ``p``."""
    receiver = call.receiver
    if (
        isinstance(receiver, Unknown) and receiver.hint == "grad" and receiver.parent is not None
    ) or (
        isinstance(receiver, Unknown) and receiver.hint == "data" and receiver.parent is not None
    ):
        call.emit(EventKind.ZERO_GRAD, receiver.parent)
    elif isinstance(receiver, (Unknown, Tensor)) and "grad" in ast.unparse(call.node.func):
        call.emit(EventKind.ZERO_GRAD, receiver)
    return receiver


def _overwrite(call: MethodCall) -> Value | None:
    """``p.grad.fill_(value)`` leaves nothing of the gradient that was there."""
    receiver = call.receiver
    if not (isinstance(receiver, Unknown) and receiver.hint == "grad" and receiver.parent):
        return None
    call.emit(EventKind.ZERO_GRAD, receiver.parent)
    return receiver


_GROWING = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict"})
_CHANGES_LIST = frozenset({"pop", "popleft", "popitem", "remove", "clear", "reverse", "sort"})


def _list_method(call: MethodCall) -> Value | None:
    group = call.receiver
    if isinstance(group, Object) and group.dotted in _GROWING:
        return _container_method(call, group)
    if not isinstance(group, Group):
        return None
    if call.name in ("append", "add", "insert", "appendleft"):
        group.elements.extend(call.arguments[-1:])
        group.last_is_sure = call.name == "append" and call.machine.conditional_depth <= group.depth
    elif call.name == "update" and group.keys is not None:
        return _update_mapping(call, group)
    elif call.name in ("extend", "update"):
        for argument in call.arguments:
            group.elements.extend(argument.elements if isinstance(argument, Group) else [argument])
        is_sure = bool(call.arguments) and is_listed(call.arguments[-1])
        group.last_is_sure = is_sure and call.machine.conditional_depth <= group.depth
    elif call.name == "get" and group.keys is not None:
        return _got(call, group)
    elif call.name in ("values", "copy"):
        return group
    elif call.name == "items":
        return _items(group)
    else:
        return None
    group.open = True
    return Constant(None)


def _items(group: Group) -> Group:
    """Pairs, each of its own where the mapping is written out in full."""
    if group.keys and not group.open and all(isinstance(key, str) for key in group.keys):
        pairs = zip(group.keys, group.elements, strict=False)
        return Group([Group([Constant(key), value]) for key, value in pairs])
    return Group(
        [Group([Unknown(), choice(group.elements) if group.elements else Unknown()])], open=True
    )


def _got(call: MethodCall, group: Group) -> Value:
    """``mapping.get(key, default)``."""
    key, default = call.argument(0, "key"), call.argument(1, "default") or Constant(None)
    if not isinstance(key, Constant) or group.open:
        return choice([*group.elements, default])
    assert group.keys is not None
    found = [
        item for name, item in zip(group.keys, group.elements, strict=False) if name == key.value
    ]
    return found[-1] if found else default


def _update_mapping(call: MethodCall, group: Group) -> Value:
    """``options.update(others)``; what is only added under a condition may be missing."""
    assert group.keys is not None
    is_sure = call.machine.conditional_depth <= group.depth
    added = list(call.keywords.items())
    for argument in call.arguments:
        if isinstance(argument, Group) and argument.keys is not None:
            added.extend(zip(map(str, argument.keys), argument.elements, strict=False))
        else:
            group.open = True
    for key, value in added:
        if not is_sure:
            held = group.elements[group.keys.index(key)] if key in group.keys else Constant(None)
            value = choice([held, value])
        group.keys.append(key)
        group.elements.append(value)
    return Constant(None)


def _container_method(call: MethodCall, container: Object) -> Value | None:
    """``nn.ModuleList().append(layer)``; the whole of what it holds is not known any more."""
    if call.name in ("append", "insert", "extend", "update"):
        container.arguments = [*container.arguments, *call.arguments[-1:], Group(open=True)]
        return container
    inside = contained(container)
    if inside and call.name == "values":
        return Group(inside, open=True)
    if inside and call.name == "items":
        return Group([Group([Unknown(), choice(inside)])], open=True)
    return None


def _detach(call: MethodCall) -> Value | None:
    if isinstance(call.receiver, Tensor):
        tensor = call.receiver
        keeps = call.name in tensors.KEEPS_ACTIVATION_METHODS
        activation = tensor.activation if keeps else None
        return Tensor(
            tensor.origins,
            tensor.modules,
            activation,
            tensor.activated_at,
            True,
            tensor.is_loss and keeps,
        )
    return None


def _prepare(call: MethodCall) -> Value | None:
    """accelerate and Fabric hand back what they were given, wrapped."""
    if not has_role(call.receiver, Role.ACCELERATOR) or not call.arguments:
        return None
    return call.arguments[0] if len(call.arguments) == 1 else Group(list(call.arguments))


def _scope(call: MethodCall) -> Value | None:
    return Context(call.name, call.node, call.argument(0, "models") or call.receiver)


def _inner_module(call: MethodCall) -> Value | None:
    """``wrapper.module(x)`` is a forward pass of the model inside."""
    from trainlint.analysis.interpreter.attributes import attribute_of

    if not has_role(call.receiver, Role.MODULE) or not (call.arguments or call.keywords):
        return None
    inner = attribute_of(call.machine, call.receiver, "module", call.node)
    return call_module(call.machine, inner, call.arguments, call.keywords, call.node)


def _save(call: MethodCall) -> Value | None:
    call.emit(EventKind.SAVE, call.receiver)
    return Constant(None)


_ANNOUNCEMENTS = (
    "wait_for_everyone", "barrier", "print", "log_dict", "gather_for_metrics", "all_reduce", "save",
    "load", "get_state_dict",
)  # fmt: skip
_VERBS: dict[str, Callable[[MethodCall], Value | None]] = {
    "zero_grad": _zero_grad,
    "step": _step,
    "first_step": _named_step,
    "second_step": _named_step,
    "backward": _backward,
    "manual_backward": _manual_backward,
    **dict.fromkeys(
        ("optimizers", "lr_schedulers", "toggle_optimizer", "untoggle_optimizer"), _of_lightning
    ),
    "train": _train,
    "eval": _eval,
    "set_epoch": _set_epoch,
    "unscale_": _unscale,
    "update": _update,
    "update_parameters": _update_average,
    "scale": _scale,
    "get_scale": _scaler_question,
    "is_enabled": _scaler_question,
    "clip_grad_norm_": _clip,
    "clip_grad_value_": _clip,
    "clip_gradients": _clip,
    "parameters": _parameters,
    "named_parameters": _parameters,
    "state_dict": _state_dict,
    "load_state_dict": _load_state_dict,
    "save_pretrained": _save,
    "module": _inner_module,
    "log": _log,
    "zero_": _zero,
    "fill_": _overwrite,
    "copy_": _overwrite,
    **dict.fromkeys(_ANNOUNCEMENTS, _announce),
    **dict.fromkeys(("prepare", "unwrap_model"), _prepare),
    **dict.fromkeys(("setup", "setup_module", "setup_optimizers", "setup_dataloaders"), _prepare),
    **dict.fromkeys(("no_sync", "no_backward_sync", "accumulate", "autocast"), _scope),
    **dict.fromkeys(tensors.ACTIVATION_METHODS, _activation),
    **dict.fromkeys(tensors.CUTS_GRAPH_METHODS, _detach),
    **dict.fromkeys(
        ("append", "add", "insert", "appendleft", "extend", "values", "copy", "items", "get"),
        _list_method,
    ),
}


_READS = tensors.PURE_METHODS | tensors.CUTS_GRAPH_METHODS
_TRAINING_VERBS = frozenset(
    {"zero_grad", "step", "backward", "manual_backward", "train", "eval", "set_epoch", "update"}
)


def is_verb(name: str) -> bool:
    """Whether a method is a verb of training, whose effect is known without knowing the object."""
    return name in _TRAINING_VERBS


def _other(call: MethodCall) -> Value:
    receiver, name = call.receiver, call.name
    if isinstance(receiver, (Tensor, Choice)) and name in tensors.KEEPS_ACTIVATION_METHODS:
        return receiver
    if isinstance(receiver, Tensor):
        return mix(receiver, *call.arguments)
    if isinstance(receiver, Parameters):
        return receiver
    if isinstance(receiver, Group):
        found = _list_method(call)
        if found is None:
            receiver.last_is_sure = receiver.last_is_sure and call.name not in _CHANGES_LIST
            found = choice(receiver.elements) if receiver.elements else Unknown()
        return found
    if has_role(receiver, Role.MODULE):
        return _on_module(call)
    return _unseen(call)


def _unseen(call: MethodCall) -> Value:
    """A method of an object that the model cannot open."""
    receiver, name = call.receiver, call.name
    held = _held_callable(call)
    if held is not None:
        return call_module(call.machine, held, call.arguments, call.keywords, call.node)
    if name in modules.RETURNS_ITSELF:
        return receiver
    if name in _READS and all(
        isinstance(option, (Unknown, Tensor, Constant)) for option in options(receiver)
    ):
        return mix(receiver, *call.arguments)
    if isinstance(receiver, Object) and receiver.dotted == "functools.partial":
        return Unknown()
    if isinstance(receiver, Object) and receiver.dotted.startswith((*BYSTANDERS, "state_dict")):
        return Unknown(hint=name)
    if isinstance(receiver, Constant):
        return _of_text(receiver, name, call.arguments)
    if isinstance(receiver, External) or _is_new_data(receiver):
        return Unknown()
    call.machine.emit(EventKind.OPAQUE, call.node, receiver, call.everything)
    return unseen_result(name)


def _of_text(text: Constant, name: str, arguments: list[Value]) -> Value:
    """``phase.lower()`` and ``phase.startswith("train")``, where the phase is known."""
    given = [item.value for item in arguments if isinstance(item, Constant)]
    if not isinstance(text.value, str) or len(given) != len(arguments):
        return Unknown()
    if name in ("lower", "upper", "strip") and not given:
        return Constant(getattr(text.value, name)())
    if name in ("startswith", "endswith") and len(given) == 1 and isinstance(given[0], str):
        return Constant(getattr(text.value, name)(given[0]))
    return Unknown()


def _held_callable(call: MethodCall) -> Value | None:
    """The loss function, or known network, that an unknown object holds under the name called."""
    from trainlint.analysis.interpreter.attributes import attribute_of

    receiver, suggested = call.receiver, by_name(call.name)
    is_known = suggested is Role.MODULE and call.name in receiver.members
    if not isinstance(receiver, Unknown) or not (is_known or suggested is Role.LOSS_FUNCTION):
        return None
    return attribute_of(call.machine, receiver, call.name, call.node)


def _on_module(call: MethodCall) -> Value:
    """A method of a network that the model cannot open: its result passed through the network."""
    if call.name in modules.RETURNS_ITSELF:
        return call.receiver
    if call.name == "forward":
        return call_module(call.machine, call.receiver, call.arguments, call.keywords, call.node)
    if call.name in modules.LEAVES_TRAINING_ALONE:
        return Unknown(hint=call.name)
    if call.name in ("modules", "children", "named_modules", "named_children"):
        return Group([Unknown(hint="module", parent=call.receiver)], open=True)
    call.machine.emit(EventKind.OPAQUE, call.node, call.receiver, call.everything)
    return Unknown(hint=call.name, parent=call.receiver)
