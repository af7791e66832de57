"""Tests: what is known of their outcome, and when two of them ask the same question."""

from __future__ import annotations

import ast

from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.trace import Assumptions, Condition
from trainlint.analysis.values import (
    Choice,
    Constant,
    External,
    FunctionValue,
    Group,
    Instance,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
)

_MAX_TOLD_APART = 6
_CHANGES_BY_ITSELF = frozenset({"sync_gradients", "is_last", "should_step", "training"})


def truth(machine: Machine, test: ast.expr) -> bool | None:
    """Whether a test certainly holds or fails; None where that depends."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(machine, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        return _truth_of_several(machine, test)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _truth_of_comparison(machine, test)
    if isinstance(test, ast.Attribute) and _asks_for_graph(machine, test):
        return False
    if isinstance(test, (ast.Constant, ast.Name, ast.Attribute)):
        return truth_of_value(value_of(machine, test))
    if isinstance(test, (ast.Call, ast.Subscript)):
        value = value_of(machine, test)
        return bool(value.value) if isinstance(value, Constant) else None
    return None


def truth_of_value(value: Value) -> bool | None:
    """Whether a value certainly counts as true or false; None where that depends."""
    if isinstance(value, Constant):
        return bool(value.value)
    return True if _is_object(value) else None


def assumptions(machine: Machine, test: ast.expr, outcome: bool) -> Assumptions:
    """What holds on the path on which the test has this outcome."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return assumptions(machine, test.operand, not outcome)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is outcome:
        return tuple(item for part in test.values for item in assumptions(machine, part, outcome))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        operator, other = test.ops[0], test.comparators[0]
        if isinstance(operator, (ast.IsNot, ast.NotEq)) and _is_empty(other):
            return assumptions(machine, test.left, outcome)
        if isinstance(operator, (ast.Is, ast.Eq)) and _is_empty(other):
            return assumptions(machine, test.left, not outcome)
        if isinstance(operator, (ast.NotEq, ast.IsNot)):
            return ((_condition(machine, machine.file.affirmed(test)), not outcome),)
    return ((_condition(machine, test), outcome),)


def choosing(choice: Choice, option: Value) -> Assumptions:
    """What holds on the path on which a choice between a few values is one of them."""
    if len(choice.options) > _MAX_TOLD_APART:
        return ()
    births = sorted(item.birth for item in choice.options)
    return ((Condition(f"one of {births}", choice.birth, volatile=False), option.birth),)


def value_of(machine: Machine, node: ast.expr) -> Value:
    """The value of an expression, looked up without leaving a trace."""
    from trainlint.analysis.interpreter.expressions import evaluate

    if machine.noted is not None and node in machine.noted:
        return machine.noted[node]
    with machine.muted():
        return evaluate(machine, node)


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, False)


def _truth_of_several(machine: Machine, test: ast.BoolOp) -> bool | None:
    decisive = isinstance(test.op, ast.Or)
    outcomes = [truth(machine, part) for part in test.values]
    if decisive in outcomes:
        return decisive
    return None if None in outcomes else not decisive


def _truth_of_comparison(machine: Machine, test: ast.Compare) -> bool | None:
    left, right = value_of(machine, test.left), value_of(machine, test.comparators[0])
    operator = test.ops[0]
    if isinstance(operator, (ast.In, ast.NotIn)):
        return _truth_of_membership(left, right, isinstance(operator, ast.In))
    if not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return None
    positive = isinstance(operator, (ast.Eq, ast.Is))
    if _is_gradient(test.left) and isinstance(right, Constant) and right.value is None:
        return not positive
    if isinstance(left, Constant) and isinstance(right, Constant):
        return (left.value == right.value) is positive
    if isinstance(test.left, ast.Attribute) and _asks_for_graph(machine, test.left):
        has_graph = not isinstance(right, Constant) or bool(right.value)
        return has_graph is not positive
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Constant) and one.value is None and _is_something(other):
            return not positive
    return None


def _is_gradient(node: ast.expr) -> bool:
    """Without a gradient there is nothing to clear or clip: the path on which it exists matters."""
    return isinstance(node, ast.Attribute) and node.attr == "grad"


def _truth_of_membership(left: Value, right: Value, positive: bool) -> bool | None:
    if not isinstance(left, Constant):
        return None
    if isinstance(right, Constant) and isinstance(right.value, str):
        return (left.value in right.value) is positive if isinstance(left.value, str) else None
    if not isinstance(right, Group) or right.open or right.keys is not None:
        return None
    if not all(isinstance(item, Constant) for item in right.elements):
        return None
    held = [item.value for item in right.elements if isinstance(item, Constant)]
    return (left.value in held) is positive


def _asks_for_graph(machine: Machine, node: ast.Attribute) -> bool:
    """``loss.requires_grad`` or ``loss.grad_fn`` of a result that was computed without a graph."""
    if node.attr not in ("requires_grad", "grad_fn") or machine.graphless_since is None:
        return False
    tensor = value_of(machine, node.value)
    is_result = isinstance(tensor, Tensor) and (tensor.is_loss or bool(tensor.modules))
    return is_result and tensor.birth > machine.graphless_since


def _is_something(value: Value) -> bool:
    return _is_object(value) or isinstance(value, (Group, Tensor, Parameters))


def _is_object(value: Value) -> bool:
    return (
        isinstance(value, (Object, Instance, FunctionValue, External))
        and not (isinstance(value, Object) and value.dotted.startswith("builtins."))
        and not (isinstance(value, External))
    )


def _condition(machine: Machine, test: ast.expr) -> Condition:
    """The question that a test asks, keyed by the identity of the values that it reads."""
    facts = machine.file.reading(test)
    is_volatile = facts.calls or not facts.attributes.isdisjoint(
        _CHANGES_BY_ITSELF | machine.file.counters
    )
    if isinstance(test, (ast.Name, ast.Attribute)):
        value = value_of(machine, test)
        return Condition(f"#{value.birth}", _birth(value), is_volatile or _varies(value))
    values = [value_of(machine, node) for node in facts.names]
    is_volatile = is_volatile or any(map(_varies, values))
    identities = ",".join(f"#{value.birth}" for value in values)
    birth = max((_birth(value) for value in values), default=0)
    return Condition(f"{facts.text}|{identities}", birth, is_volatile)


def _birth(value: Value) -> int:
    """An attribute of an unknown object is as old as the object."""
    while isinstance(value, Unknown) and value.parent is not None:
        value = value.parent
    return value.birth


def _varies(value: Value) -> bool:
    """Whether a value is, or hangs on, what a loop walks through."""
    while isinstance(value, Unknown) and value.parent is not None and not value.varies:
        value = value.parent
    return isinstance(value, Unknown) and value.varies
