"""Context managers and decorators that change how the code inside them runs."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.values import Constant, Context, Object, Unknown, Value

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel

_KINDS = {
    "torch.no_grad": "no_grad",
    "torch.inference_mode": "inference_mode",
    "torch.enable_grad": "enable_grad",
    "torch.set_grad_enabled": "set_grad_enabled",
    "torch.autograd.no_grad": "no_grad",
    "torch.autograd.enable_grad": "enable_grad",
    "torch.autograd.inference_mode": "inference_mode",
    "torch.autograd.set_grad_enabled": "set_grad_enabled",
    "torch.cuda.amp.autocast": "autocast",
    "torch.amp.autocast": "autocast",
    "torch.autocast": "autocast",
    "torch.cpu.amp.autocast": "autocast",
}
_STACKS = frozenset({"contextlib.ExitStack", "contextlib.AsyncExitStack"})
_GRADIENT_WORDS = re.compile(r"no_?grad|inference_?mode|set_grad", re.IGNORECASE)
_MAY_SWITCH_GRADIENTS = re.compile(_GRADIENT_WORDS.pattern + "|eval|infer", re.IGNORECASE)
GRAD_SWITCHES = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
GRAD_OFF = frozenset({"no_grad", "inference_mode"})


def context_of(
    dotted: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
) -> Context | None:
    """The context manager that a library call makes, if it is one that matters."""
    kind = _KINDS.get(dotted)
    if kind is None:
        return None
    subject = arguments[0] if arguments else keywords.get("mode", keywords.get("enabled"))
    if kind == "inference_mode" and isinstance(subject, Constant) and subject.value is False:
        kind = "enable_grad"
    if kind == "set_grad_enabled" and isinstance(subject, Constant):
        kind = "enable_grad" if subject.value else "no_grad"
    return Context(kind, node, subject)


def uncalled_context(dotted: str, node: ast.expr) -> Context | None:
    """What ``with torch.no_grad:`` means: the missing parentheses have a rule of their own."""
    kind = _KINDS.get(dotted)
    return Context(kind, node) if kind is not None and kind != "set_grad_enabled" else None


def unseen_context(expression: ast.expr, value: Value, body: list[ast.stmt]) -> Context | None:
    """What an unresolved context manager may be, if its name speaks of gradients or evaluation.

    Or if it is an ``ExitStack`` that ``no_grad()`` is put on, under whatever condition.
    """
    if isinstance(value, Object) and value.dotted in _STACKS:
        text = "\n".join(map(ast.unparse, body))
        is_put = "enter_context" in text and _GRADIENT_WORDS.search(text) is not None
        return Context("maybe no_grad", expression) if is_put else None
    is_unresolved = isinstance(value, (Unknown, Object))
    if not is_unresolved or not _MAY_SWITCH_GRADIENTS.search(ast.unparse(expression)):
        return None
    return Context("maybe no_grad", expression)


def may_switch_gradients_on(text: str) -> bool:
    """Whether code says anywhere that gradients are switched on, or by a flag."""
    return "enable_grad" in text or "set_grad_enabled" in text or "inference_mode(False" in text


def decorator_scopes(function: FunctionDefinition) -> list[tuple[str, ast.expr]]:
    """The scopes that a function's decorators put around its body, outermost first."""
    found: list[tuple[str, ast.expr]] = []
    for decorator in function.node.decorator_list:
        expression = decorator.func if isinstance(decorator, ast.Call) else decorator
        kind = _KINDS.get(function.file.qualified(expression) or "")
        if kind is None and _may_switch_gradients(function.file, expression):
            kind = "maybe no_grad"
        if kind is not None:
            found.append((_with_flag(kind, decorator), decorator))
    return found


def _may_switch_gradients(file: FileModel, decorator: ast.expr) -> bool:
    """A decorator of the project that uses ``no_grad``, or an unseen one that is called so."""
    found = file.resolve(decorator)
    if found is not None:
        return bool(_GRADIENT_WORDS.search(found.file.segment(found.node)))
    return bool(_GRADIENT_WORDS.search(ast.unparse(decorator)))


def _with_flag(kind: str, decorator: ast.expr) -> str:
    first = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
    if kind == "set_grad_enabled" and isinstance(first, ast.Constant):
        return "enable_grad" if first.value else "no_grad"
    return kind
