"""Reading the autograd graph backwards from a tensor: node names and shapes only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# How many nodes behind a loss are looked at; the loss's own arithmetic is this close.
NEAR = 40
_SHAPES_ONLY = (
    "View", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Select", "ToCopy", "Permute",
    "Transpose", "TBackward", "Clone", "Index", "Alias", "Expand", "Contiguous", "UnsafeView",
    "Cat", "Stack",
)  # fmt: skip
_ELEMENTWISE = (
    "Sub", "Pow", "Abs", "Mul", "Mean", "Sum", "Div", "Add", "Neg", "Square", "Sqrt", "Where",
    "Clamp", "Exp", "Log", "Cosh", "Tanh", "Softplus", "Relu", "Minimum", "Maximum",
)  # fmt: skip
# How far the arithmetic of a loss is followed.
_DEEP = 12


def maker_of(tensor: torch.Tensor) -> str:
    """The operation that computed the values, looking through reshapes and casts."""
    node: Any = tensor.grad_fn
    for _ in range(NEAR):
        if node is None:
            return ""
        name = node.name()
        if not any(shape in name for shape in _SHAPES_ONLY):
            return str(name).removesuffix("0").removesuffix("Backward")
        following = [n for n, _ in node.next_functions if n is not None]
        if not following:
            return ""
        node = following[0]
    return ""


def _near(tensor: torch.Tensor) -> Iterator[Any]:
    seen: set[int] = set()
    queue: list[Any] = [tensor.grad_fn]
    kept = []
    while queue and len(seen) < NEAR:
        node = queue.pop(0)
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        kept.append(node)
        yield node
        queue.extend(following for following, _ in node.next_functions)


def summary(loss: torch.Tensor) -> list[str]:
    """The names of the nodes next to a loss."""
    return [str(node.name()) for node in _near(loss)]


def _output_shape(node: Any) -> list[int] | None:
    metadata = getattr(node, "_input_metadata", None)
    return list(metadata[0].shape) if metadata else None


def implicit_broadcasts(loss: torch.Tensor) -> list[list[int]]:
    """Differences next to the loss whose result is larger than the prediction that went in.

    ``(N, 1) - (N,)`` gives ``(N, N)``. A deliberate one writes the new axis out, which is an
    Unsqueeze node, and is left alone. Each entry is the operand's shape followed by the result's.
    """
    found = []
    node: Any = loss.grad_fn
    for _ in range(_DEEP):
        if node is None or not any(name in node.name() for name in _ELEMENTWISE):
            break
        following = [n for n, _ in node.next_functions if n is not None]
        if "Sub" in node.name() and len(following) == 1:
            result, operand = _output_shape(node), _operand_shape(following[0])
            if result and operand is not None and _outer(operand, result):
                found.append(operand + result)
        node = following[0] if following else None
    return found


def _operand_shape(node: Any) -> list[int] | None:
    return None if "Unsqueeze" in node.name() else _output_shape(node)


def _outer(operand: list[int], result: list[int]) -> bool:
    square = len(result) >= 2 and result[-1] == result[-2] and result[-1] > 1
    thin = operand == [*result[:-1], 1] or operand == result[:-1] or operand == result[1:]
    return square and thin
