"""Methods that train, evaluate, or take part in it: the verbs of training."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainlint.analysis.frameworks import framework_of
from trainlint.analysis.interpreter.expressions import mix
from trainlint.analysis.interpreter.method_calls import MethodCall
from trainlint.analysis.interpreter.module_calls import call_module, loss_value
from trainlint.analysis.knowledge import training
from trainlint.analysis.roles import Role, has_role, role
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import (
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
    options,
)


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
        if not certain and _is_given_loss(call):
            return None
        _run_closure(call)
        call.emit(EventKind.STEP, call.receiver, certain)
        return loss_value([])
    return None


def _is_given_loss(call: MethodCall) -> bool:
    """``optimizer.step(loss)``: it differentiates the loss itself, and leaves ``.grad`` alone."""
    given = call.argument(0, "loss")
    written = call.node.args[0] if isinstance(call.node, ast.Call) and call.node.args else None
    is_named = isinstance(written, ast.Name) and training.looks_like_loss_result(written.id)
    is_closure = any(isinstance(item, (FunctionValue, LambdaValue)) for item in options(given))
    return isinstance(given, Tensor) or (is_named and not is_closure)


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
    """What has parameters is a module, whatever its name, where nothing says otherwise."""
    receiver = call.receiver
    if isinstance(receiver, (Group, Tensor)):
        return None
    if role(receiver)[0] is Role.OTHER:
        if isinstance(receiver, Unknown):
            receiver.annotation = receiver.annotation or "torch.nn.Module"
        elif isinstance(receiver, Object):
            receiver.has_parameters = True
    return Parameters(receiver, call.node)


def _state_dict(call: MethodCall) -> Value:
    return Object("state_dict", call.node, [call.receiver], call.keywords)


def _load_state_dict(call: MethodCall) -> Value:
    call.emit(EventKind.LOAD, call.receiver)
    return Unknown()


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


def _prepare(call: MethodCall) -> Value | None:
    """accelerate and Fabric hand back what they were given, wrapped."""
    if not has_role(call.receiver, Role.ACCELERATOR) or not call.arguments:
        return None
    return call.arguments[0] if len(call.arguments) == 1 else Group(list(call.arguments))


def _per_device_loader(call: MethodCall) -> Value:
    """torch_xla's loader moves the batches of the one that it was made from."""
    return call.receiver


def _make_private(call: MethodCall) -> Value | None:
    """Opacus hands back the network, the optimizer and the loader, wrapped."""
    given = [call.keywords.get(name) for name in ("module", "optimizer", "data_loader")]
    wrapped = [item for item in given if item is not None]
    return Group(wrapped) if len(wrapped) == 3 and "criterion" not in call.keywords else None


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
TRAINING_METHODS: dict[str, Callable[[MethodCall], Value | None]] = {
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
    "zero_": _zero,
    "fill_": _overwrite,
    "copy_": _overwrite,
    **dict.fromkeys(_ANNOUNCEMENTS, _announce),
    **dict.fromkeys(("prepare", "unwrap_model"), _prepare),
    "per_device_loader": _per_device_loader,
    **dict.fromkeys(("make_private", "make_private_with_epsilon"), _make_private),
    **dict.fromkeys(("setup", "setup_module", "setup_optimizers", "setup_dataloaders"), _prepare),
    **dict.fromkeys(("no_sync", "no_backward_sync", "accumulate", "autocast"), _scope),
}
