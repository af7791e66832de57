"""Functions and classes of libraries: what calling them does, and what comes back."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainlint.analysis.interpreter.attributes import attribute_of
from trainlint.analysis.interpreter.expressions import each, mix
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.scopes import context_of
from trainlint.analysis.knowledge import losses, tensors, training
from trainlint.analysis.knowledge.libraries import PASS_THROUGH, is_harmless
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import (
    Choice,
    Constant,
    External,
    FunctionValue,
    Generator,
    Group,
    LambdaValue,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
    choice,
)

Arguments = list[Value]
Keywords = dict[str, Value]


def call_library(
    machine: Machine, dotted: str, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """Call a library's function or class by its canonical name."""
    if dotted in losses.LOSS_FUNCTIONS:
        from trainlint.analysis.interpreter.module_calls import apply_loss

        return apply_loss(machine, External(dotted), arguments, keywords, node)
    if dotted in tensors.ACTIVATION_FUNCTIONS:
        return activated(arguments, tensors.ACTIVATION_FUNCTIONS[dotted], node)
    if dotted in tensors.LOG_FUNCTIONS:
        return logarithm(arguments[0] if arguments else Unknown(), node)
    if dotted in tensors.KEEPS_ACTIVATION_FUNCTIONS and arguments:
        return first_tensor(arguments[0])
    context = context_of(dotted, arguments, keywords, node)
    if context is not None:
        return context
    if dotted == "builtins.filter" and len(arguments) > 1:
        return Group([each(arguments[1])], open=True)
    if dotted in PASS_THROUGH:
        return arguments[0] if arguments else Unknown()
    if dotted in tensors.NEW_DATA_FUNCTIONS:
        return Tensor(detached=True)
    special = _SPECIAL.get(dotted)
    if special is not None:
        return special(machine, arguments, keywords, node)
    return _general(machine, dotted, arguments, keywords, node)


def activated(arguments: Arguments, activation: str, node: ast.AST) -> Value:
    """The tensor after softmax, sigmoid and the like."""
    source = mix(arguments[0]) if arguments else Unknown()
    tensor = source if isinstance(source, Tensor) else Tensor()
    return Tensor(tensor.origins, tensor.modules, activation, node, tensor.detached)


def logarithm(value: Value, node: ast.AST) -> Value:
    """``log`` of probabilities is log-probabilities."""
    if isinstance(value, Choice):
        return choice(logarithm(option, node) for option in value.options)
    if isinstance(value, Tensor):
        activation = tensors.LOG_OF.get(value.activation or "")
        return Tensor(value.origins, value.modules, activation or "log", node, value.detached)
    return Tensor(activation="log", activated_at=node)


def first_tensor(value: Value) -> Value:
    """The tensor itself; of a list of tensors, what they have in common."""
    if not isinstance(value, Group):
        return value
    found = [element for element in value.elements if isinstance(element, Tensor)]
    activations = {tensor.activation for tensor in found}
    merged = mix(*value.elements)
    if isinstance(merged, Tensor) and len(activations) == 1 and len(found) == len(value.elements):
        merged.activation = found[0].activation
        merged.activated_at = found[0].activated_at
    return merged


def _general(
    machine: Machine, dotted: str, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    last = dotted.rpartition(".")[2]
    everything = (*arguments, *keywords.values())
    for argument in everything:
        _call_back(machine, argument, node)
    if (
        last[:1].isupper()
        or training.is_scheduler_class(dotted)
        or last.startswith(("from_", "create_"))
    ):
        made = Object(dotted, node, arguments, keywords)
        machine.emit(EventKind.NEW, node, made, everything)
        return made
    if not is_harmless(dotted):
        machine.emit(EventKind.OPAQUE, node, External(dotted), everything)
        return Object(dotted, node, arguments, keywords)
    result = mix(*everything)
    if isinstance(result, Tensor) and dotted.startswith(("torch.", "builtins.sum")):
        return result
    return Object(dotted, node, arguments, keywords)


def _call_back(machine: Machine, argument: Value, node: ast.Call) -> None:
    """A function handed to a library may be called by it: that counts as happening here."""
    if isinstance(argument, (FunctionValue, LambdaValue)) and not machine.exhausted:
        from trainlint.analysis.interpreter.calls import call_value

        if isinstance(argument, FunctionValue) and argument.definition.is_generator:
            return
        call_value(machine, argument, [], {}, node)


def _backward(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    machine.emit(EventKind.BACKWARD, node, arguments[0] if arguments else None)
    return Constant(None)


def _gradients(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    machine.emit(EventKind.GRADIENT, node, arguments[0] if arguments else keywords.get("outputs"))
    return Tensor(origins=frozenset({"gradient"}))


def _clip(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    machine.emit(EventKind.CLIP, node, arguments[0] if arguments else keywords.get("parameters"))
    return Tensor()


def _step_on_tpu(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """``xm.optimizer_step(optimizer)`` averages gradients over the cores and takes the step."""
    optimizer = arguments[0] if arguments else keywords.get("optimizer")
    machine.emit(EventKind.STEP, node, optimizer, tuple(arguments))
    return Constant(None)


def _save(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    machine.emit(EventKind.SAVE, node, arguments[0] if arguments else keywords.get("obj"))
    return Constant(None)


def _load(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    return Object("torch.load", node, arguments, keywords)


def _deepcopy(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    if not arguments or isinstance(arguments[0], (Constant, Group)):
        return arguments[0] if arguments else Unknown()
    return Object("copy.deepcopy", node, copy_of=arguments[0])


def _average(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    """``AveragedModel(model)`` starts as a copy with parameters of its own."""
    model = arguments[0] if arguments else keywords.get("model")
    made = Object("torch.optim.swa_utils.AveragedModel", node, copy_of=model)
    machine.emit(EventKind.NEW, node, made)
    return made


def _dictionary(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    if keywords and not arguments:
        return Group(list(keywords.values()), keys=list(keywords))
    return arguments[0] if arguments else Group(keys=[])


def _getattr(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    if (
        len(arguments) > 1
        and isinstance(arguments[1], Constant)
        and isinstance(arguments[1].value, str)
    ):
        return attribute_of(machine, arguments[0], arguments[1].value, node)
    return Unknown(parent=arguments[0] if arguments else None)


def _next(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    if arguments and isinstance(arguments[0], Generator):
        return _one_of(machine, arguments[0])
    return each(arguments[0]) if arguments else Unknown()


def _one_of(machine: Machine, generator: Generator) -> Value:
    """What ``next`` takes from a generator function; its loops stand here as if run whole."""
    from trainlint.analysis.interpreter.generators import run_generator

    yielded: list[Value] = []
    run_generator(machine, generator, yielded.append)
    return choice(yielded)


def _unwrapping(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """Wrappers that go on being the thing they wrap."""
    return arguments[0] if arguments else Unknown()


def _apex_initialize(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """apex hands back the model and the optimizer that it was given, changed in place."""
    given = arguments[:2]
    given += [keywords[name] for name in ("models", "optimizers")[len(given) :] if name in keywords]
    return given[0] if len(given) == 1 else Group(given)


def _master_params(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return Parameters(arguments[0], node) if arguments else Unknown()


def _partial(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    if isinstance(arguments[0] if arguments else None, External):
        return arguments[0]
    return Object("functools.partial", node, arguments, keywords)


def _detached(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    found = mix(*arguments)
    return (
        Tensor(found.origins, found.modules, detached=True)
        if isinstance(found, Tensor)
        else Tensor(detached=True)
    )


def _initial_weights(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    return Parameters(arguments[0] if arguments else Unknown(), node)


def _flag(machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Value:
    """``bool(flag)`` asks what ``flag`` itself would."""
    given = arguments[0] if arguments else Constant(None)
    return Constant(bool(given.value)) if isinstance(given, Constant) else given


def _builds_graph(
    machine: Machine, arguments: Arguments, keywords: Keywords, node: ast.Call
) -> Value:
    """``torch.is_grad_enabled()`` is known where the code itself has switched gradients off."""
    return Unknown() if machine.graphless_since is None else Constant(False)


_SPECIAL: dict[str, Callable[[Machine, Arguments, Keywords, ast.Call], Value]] = {
    "torch.autograd.backward": _backward,
    **dict.fromkeys(tensors.DIFFERENTIATING_FUNCTIONS, _gradients),
    "torch.nn.utils.clip_grad_norm_": _clip,
    "torch.nn.utils.clip_grad_norm": _clip,
    "torch.nn.utils.clip_grad_value_": _clip,
    "torch.nn.utils.clip_grad.clip_grad_norm_": _clip,
    "torch_xla.core.xla_model.optimizer_step": _step_on_tpu,
    "torch.save": _save,
    "torch.load": _load,
    "torch.argmax": _detached,
    "torch.from_numpy": _detached,
    "torch.no_grad": _unwrapping,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _unwrapping,
    "torch.optim.swa_utils.AveragedModel": _average,
    "torch.is_grad_enabled": _builds_graph,
    "builtins.bool": _flag,
    "builtins.dict": _dictionary,
    "builtins.getattr": _getattr,
    "builtins.next": _next,
    "functools.partial": _partial,
    "torch.jit.trace": _unwrapping,
    "torch.nn.Parameter": _initial_weights,
    "apex.amp.initialize": _apex_initialize,
    "apex.amp.scale_loss": _unwrapping,
    "apex.amp.master_params": _master_params,
}
