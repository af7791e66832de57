"""Whether somebody may want the graph that an evaluation's forward pass builds."""

from __future__ import annotations

import ast
import re

from trainlint.analysis.evaluation_loops import evaluation_loop
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.index import Function
from trainlint.analysis.protocols.modes import EVAL, ForwardPass
from trainlint.analysis.values import Constant, Object, elements

_NEEDS_GRADIENTS = re.compile(
    r"backward|autograd|\.grad\b|requires_grad|grad_fn|attack|advers|saliency|gradcam|func\.grad|"
    r"enable_grad|energy|forces\b|hessian|jacobian|pgd|fgsm",
    re.IGNORECASE,
)
_SINCE_0_4 = re.compile(r"\.item\(\)|torch\.(no_grad|device|tensor|argmax|set_grad_enabled)\b")
_PROBES = frozenset({"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"})


def may_need_graph(found: ForwardPass) -> bool:
    """Whether something near an evaluation's forward pass may take gradients of it.

    Its loop is looked at; where there is none, all that follows ``eval()`` in the function.
    """
    if found.is_differentiated and found.moment.mode == EVAL:
        return True
    file, loop = found.event.file, evaluation_loop(found)
    function = file.index.enclosing_function(found.event.node)
    switch = found.moment.switch
    if loop is not None and loop.file is file:
        text = f"{function.name if function else ''} {ast.unparse(loop.node)}"
    else:
        text = _text_after(file, function, switch.node if switch and switch.file is file else None)
    return speaks_of_gradients(text) or (_is_volatile(text) and not _since_0_4(file))


def speaks_of_gradients(text: str) -> bool:
    """Whether code mentions gradients, or what is known to need them."""
    return bool(_NEEDS_GRADIENTS.search(text))


def _is_volatile(text: str) -> bool:
    """``Variable(x, volatile=True)``: how torch 0.3 said ``no_grad``."""
    return bool(re.search(r"volatile\s*=\s*True", text))


def _since_0_4(file: FileModel) -> bool:
    """Whether the file uses what came with torch 0.4, which took the meaning from ``volatile``."""
    return bool(_SINCE_0_4.search(file.source.text))


def _text_after(file: FileModel, function: Function | None, switch: ast.AST | None) -> str:
    """The function, or from ``eval()`` on if that stands in it."""
    lines = file.source.lines
    first, last = (1, len(lines)) if function is None else (function.lineno, function.end_lineno)
    line = getattr(switch, "lineno", 0)
    if switch is not None and file.index.enclosing_function(switch) is function:
        first = max(first, line)
    return "".join(lines[first - 1 : last])


def is_shape_probe(found: ForwardPass) -> bool:
    """One pass over ``torch.randn(2, 3, 32, 32)`` asks for shapes only."""
    made = [item for value in found.event.arguments[:1] for item in elements(value)]
    return any(
        isinstance(item, Object)
        and item.dotted in _PROBES
        and len(item.arguments) > 2
        and all(isinstance(size, Constant) for size in item.arguments)
        for item in made
    )


def is_warm_up(found: ForwardPass) -> bool:
    """``model(x)`` as a statement: lazy layers get their sizes, a device wakes up."""
    file, call = found.event.file, found.event.node
    return isinstance(call, ast.Call) and isinstance(file.index.parents.get(call), ast.Expr)


def is_handed_on(found: ForwardPass) -> bool:
    """Whether the function hands on what the model gave: its caller may want the graph."""
    file, call = found.event.file, found.event.node
    statement = file.index.statement(call)
    if isinstance(statement, (ast.Return, ast.Expr)):
        return isinstance(statement, ast.Return)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {
        item.id for target in targets for item in ast.walk(target) if isinstance(item, ast.Name)
    }
    function = file.index.enclosing_function(call)
    returned = [
        item.value
        for item in (ast.walk(function) if function else ())
        if isinstance(item, ast.Return) and item.value is not None
    ]
    handed_on = [
        part
        for value in returned
        for part in (value.elts if isinstance(value, ast.Tuple) else [value])
    ]
    return any(isinstance(part, ast.Name) and part.id in names for part in handed_on)
