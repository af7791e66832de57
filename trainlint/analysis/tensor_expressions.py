"""Which expressions certainly are tensors, told from the syntax tree."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from trainlint.analysis.blocks import loop_around
from trainlint.analysis.knowledge.training import looks_like_loader
from trainlint.analysis.receivers import assigned_at, last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "tensor", "as_tensor", "from_numpy", "zeros", "ones", "rand", "randn", "randint",
        "randperm", "empty", "full", "arange", "linspace", "eye", "cat", "stack", "zeros_like",
        "ones_like",
        "rand_like", "randn_like", "full_like", "FloatTensor", "LongTensor", "Tensor", "matmul",
        "bmm", "exp", "sqrt", "argmax", "normal", "triu", "tril", "where", "autograd.Variable",
    )
)  # fmt: skip
_KEEPS_TENSOR = frozenset(
    {
        "to", "cuda", "cpu", "float", "half", "double", "long", "int", "bool", "view", "reshape",
        "unsqueeze", "squeeze", "permute", "transpose", "contiguous", "clone", "detach", "repeat",
        "expand", "div", "mul", "flatten", "t", "requires_grad_",
    }
)  # fmt: skip
_MAKE_INTEGERS = frozenset(
    {"torch.randint", "torch.randperm", "torch.argmax", "torch.arange", "torch.LongTensor"}
)
_KEEPS_TYPE = frozenset(
    {
        "cuda", "cpu", "view", "reshape", "unsqueeze", "squeeze", "permute", "transpose", "roll",
        "contiguous", "clone", "detach", "repeat", "expand", "flatten", "t",
    }
)  # fmt: skip
_WALKERS = frozenset({"enumerate", "tqdm"})
_TENSOR_TYPES = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.LongTensor"})


def is_tensor(file: FileModel, node: ast.expr) -> bool:
    """Whether an expression certainly is a tensor: all that the file assigns to it is.

    What comes out of a loader is one until its lap assigns something else.
    """
    if isinstance(node, ast.Call):
        return _makes_tensor(file, node)
    if isinstance(node, ast.Name):
        bound = file.index.bindings(node.id, file.index.scope(node))
        others = [item for item in bound if not _is_bound_to_tensor(file, item)]
        return bool(bound) and (not others or _is_fresh(file, node, bound, others))
    owner = file.index.enclosing_class(node)
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    if owner is None or not is_own:
        return False
    assert isinstance(node, ast.Attribute)
    values = [item.value for item, _ in file.attribute_assignments(owner).get(node.attr, [])]
    return bool(values) and all(
        isinstance(value, ast.Call) and _makes_tensor(file, value) for value in values
    )


def is_integer(file: FileModel, node: ast.expr) -> bool:
    """Whether an expression certainly is a tensor of integers: all that the file assigns to it."""
    if isinstance(node, ast.Name):
        values = [
            assigned_at(file, item) for item in file.index.bindings(node.id, file.index.scope(node))
        ]
        return bool(values) and all(
            isinstance(value, ast.Call) and is_integer(file, value) for value in values
        )
    if not isinstance(node, ast.Call):
        return False
    dtype = next((item.value for item in node.keywords if item.arg == "dtype"), None)
    if dtype is not None:
        return file.qualified(dtype) in ("torch.long", "torch.int64")
    if file.qualified(node.func) in _MAKE_INTEGERS:
        return not any(
            isinstance(item, ast.Constant) and isinstance(item.value, float)
            for item in ast.walk(node)
        )
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("long", "argmax"):
        return True
    return node.func.attr in _KEEPS_TYPE and is_integer(file, node.func.value)


def _makes_tensor(file: FileModel, call: ast.Call) -> bool:
    if file.qualified(call.func) in _FACTORIES:
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _KEEPS_TENSOR:
        return False
    inner = call.func.value
    return isinstance(inner, ast.Call) and _makes_tensor(file, inner)


def _is_bound_to_tensor(file: FileModel, bound: ast.AST) -> bool:
    if isinstance(bound, ast.arg):
        return bound.annotation is not None and file.qualified(bound.annotation) in _TENSOR_TYPES
    if isinstance(file.index.parents.get(bound), ast.AugAssign):
        return True
    value = assigned_at(file, bound)
    if value is not None:
        return isinstance(value, ast.Call) and (
            _makes_tensor(file, value) or _changes_itself(value, bound)
        )
    return _is_part_of_batch(file, bound)


def _changes_itself(value: ast.Call, bound: ast.AST) -> bool:
    """``x = x.float()`` keeps what ``x`` is."""
    function = value.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _KEEPS_TENSOR
        and isinstance(function.value, ast.Name)
        and function.value.id == getattr(bound, "id", None)
    )


def _is_fresh(file: FileModel, node: ast.Name, bound: list[ast.AST], others: list[ast.AST]) -> bool:
    """Whether the loop over batches has just bound a name, and nothing else in its body yet."""
    loop = loop_around(file, node)
    return (
        isinstance(loop, ast.For)
        and any(file.index.holds(loop.target, item) for item in bound if item not in others)
        and not any(file.index.holds(loop, item) and _line(item) <= node.lineno for item in others)
    )


def _line(bound: ast.AST) -> int:
    return getattr(bound, "lineno", 0)


def _is_part_of_batch(file: FileModel, bound: ast.AST) -> bool:
    """``for images, labels in loader:``, where a batch is a tuple of tensors."""
    part = file.index.parents.get(bound)
    if not isinstance(part, ast.Tuple):
        return False
    loop: ast.AST | None = part
    while isinstance(loop, ast.Tuple):
        loop = file.index.parents.get(loop)
    if not isinstance(loop, ast.For):
        return False
    walked = loop.iter
    is_numbered = False
    while isinstance(walked, ast.Call) and last_name(walked.func) in _WALKERS and walked.args:
        is_numbered = is_numbered or last_name(walked.func) == "enumerate"
        walked = walked.args[0]
    if is_numbered and part is loop.target:
        return False
    return looks_like_loader(last_name(walked)) and "loader" in last_name(walked).lower()
