"""Methods of tensors that squash values, or cut the graph."""

from __future__ import annotations

from collections.abc import Callable

from trainlint.analysis.interpreter.library import activated, logarithm
from trainlint.analysis.interpreter.method_calls import MethodCall
from trainlint.analysis.knowledge import tensors
from trainlint.analysis.values import Choice, Object, Tensor, Unknown, Value


def _activation(call: MethodCall) -> Value | None:
    is_new_data = isinstance(call.receiver, Object) and call.receiver.dotted.startswith("torch.")
    if isinstance(call.receiver, (Tensor, Unknown, Choice)) or is_new_data:
        return activated([call.receiver], tensors.ACTIVATION_METHODS[call.name], call.node)
    return None


def _log(call: MethodCall) -> Value | None:
    return (
        logarithm(call.receiver, call.node) if isinstance(call.receiver, (Tensor, Choice)) else None
    )


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


TENSOR_METHODS: dict[str, Callable[[MethodCall], Value | None]] = {
    "log": _log,
    **dict.fromkeys(tensors.ACTIVATION_METHODS, _activation),
    **dict.fromkeys(tensors.CUTS_GRAPH_METHODS, _detach),
}
