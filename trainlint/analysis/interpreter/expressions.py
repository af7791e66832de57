"""Expressions: from a syntax node to a value, with the events on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from trainlint.analysis.interpreter.attributes import attribute_of, element_of, item_of
from trainlint.analysis.interpreter.conditions import assumptions, truth, truth_of_value
from trainlint.analysis.interpreter.machine import Machine
from trainlint.analysis.interpreter.unrolling import spelled_out
from trainlint.analysis.roles import Role, by_name
from trainlint.analysis.trace import Branch, Jump, Loop, Trace
from trainlint.analysis.values import (
    Choice,
    Constant,
    Generator,
    Group,
    LambdaValue,
    Object,
    Parameters,
    Tensor,
    Unknown,
    Value,
    choice,
    contained,
    elements,
    give_name,
    is_listed,
)

_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def evaluate(machine: Machine, node: ast.expr) -> Value:
    """The value of an expression; what it does is written to the machine's trace."""
    machine.budget -= 1
    handler = _HANDLERS.get(type(node), _children)
    value = handler(machine, node)
    if machine.noted is not None:
        machine.noted[node] = value
    return value


def evaluate_all(machine: Machine, nodes: Iterable[ast.expr | None]) -> list[Value]:
    """The values of several expressions, starred ones spread where their elements are known."""
    values: list[Value] = []
    for node in nodes:
        if node is None:
            continue
        if isinstance(node, ast.Starred):
            inner = evaluate(machine, node.value)
            values.extend(inner.elements if isinstance(inner, Group) else [inner])
            if isinstance(inner, Group) and not inner.last_is_sure:
                values.append(Unknown())
        else:
            values.append(evaluate(machine, node))
    return values


def mix(*values: Value) -> Value:
    """What arithmetic on values gives: a tensor made from all of them, its squashing lost."""
    tensors = [item for value in values for item in elements(value) if isinstance(item, Tensor)]
    if not tensors:
        return Unknown()
    return Tensor(
        origins=frozenset().union(*(tensor.origins for tensor in tensors)),
        modules=frozenset().union(*(tensor.trains for tensor in tensors)),
        detached=all(tensor.detached for tensor in tensors),
        is_loss=any(tensor.is_loss for tensor in tensors),
        scaler=next((tensor.scaler for tensor in tensors if tensor.scaler), None),
    )


def bind(machine: Machine, target: ast.expr, value: Value) -> None:
    """Assign a value to a target of any shape."""
    from trainlint.analysis.interpreter.attributes import set_attribute, set_item

    if isinstance(target, ast.Name):
        give_name(value, target.id)
        machine.frame.environment.assign(target.id, value)
    elif isinstance(target, ast.Attribute):
        set_attribute(machine, evaluate(machine, target.value), target.attr, value, target)
    elif isinstance(target, ast.Subscript):
        container = evaluate(machine, target.value)
        set_item(machine, container, target, value)
    elif isinstance(target, ast.Starred):
        bind(machine, target.value, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for position, part in enumerate(target.elts):
            item = _unpacked(value, position, len(target.elts))
            if isinstance(part, ast.Name):
                _name_better(item, part.id)
            bind(machine, part, item)


def _name_better(item: Value, name: str) -> None:
    """``first_opt, second_opt = optimizers``: the name that tells the two apart."""
    is_derived = isinstance(item, Unknown) and item.parent is not None
    if is_derived and item.hint and by_name(item.hint) is by_name(name) is not Role.OTHER:
        item.hint = name


def _unpacked(value: Value, position: int, count: int) -> Value:
    if isinstance(value, Choice):
        return choice(_unpacked(option, position, count) for option in value.options)
    if isinstance(value, Group) and value.keys is None and not value.open:
        return value.elements[position] if position < len(value.elements) else Unknown()
    if isinstance(value, Parameters) and position == count - 1:
        return value
    return element_of(value, f"[{position}]")


def _name(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Name)
    value = machine.frame.environment.lookup(node.id)
    if value is not None:
        return value
    dotted = machine.file.qualified(node)
    if dotted is not None:
        return machine.definition_value(dotted)
    unknown = Unknown(hint=node.id)
    machine.frame.environment.outermost().values[node.id] = unknown
    return unknown


def _attribute(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Attribute)
    return attribute_of(machine, evaluate(machine, node.value), node.attr, node)


def _constant(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Constant)
    return Constant(node.value)


def _call(machine: Machine, node: ast.expr) -> Value:
    from trainlint.analysis.interpreter.calls import call

    assert isinstance(node, ast.Call)
    return call(machine, node)


def _display(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, (ast.List, ast.Tuple, ast.Set))
    return Group(evaluate_all(machine, node.elts), depth=machine.conditional_depth)


def _dict(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Dict)
    keys: list[object] = []
    for key in node.keys:
        value = evaluate(machine, key) if key is not None else None
        keys.append(value.value if isinstance(value, Constant) else value)
    values = [evaluate(machine, item) for item in node.values]
    return Group(values, keys=keys, depth=machine.conditional_depth)


def _subscript(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Subscript)
    container = evaluate(machine, node.value)
    if isinstance(node.slice, ast.Slice):
        return item_of(container, node.slice)
    index = evaluate(machine, node.slice)
    key = index.value if isinstance(index, Constant) else None
    if isinstance(key, (str, int)) and isinstance(container, (Group, Object)):
        return item_of(container, ast.copy_location(ast.Constant(key), node.slice))
    return item_of(container, node.slice)


def _operation(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.BinOp)
    left, right = evaluate(machine, node.left), evaluate(machine, node.right)
    if isinstance(left, Group) and isinstance(right, Group) and isinstance(node.op, ast.Add):
        sure = is_listed(right) or (not right.elements and is_listed(left))
        joined = [*left.elements, *right.elements]
        return Group(
            joined, open=left.open or right.open, depth=machine.conditional_depth, last_is_sure=sure
        )
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _folded(node.op, left.value, right.value)
    return mix(left, right)


def _folded(operator: ast.operator, left: object, right: object) -> Value:
    both = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if both and isinstance(operator, ast.Add):
        return Constant(left + right)  # type: ignore[operator]
    if both and isinstance(operator, ast.Sub):
        return Constant(left - right)  # type: ignore[operator]
    return Unknown()


def _unary(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.UnaryOp)
    if isinstance(node.op, ast.Not):
        return _decided(machine, node)
    value = evaluate(machine, node.operand)
    if isinstance(value, Constant) and isinstance(value.value, (int, float)):
        return Constant(-value.value) if isinstance(node.op, ast.USub) else value
    return mix(value)


def _either(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.BoolOp)
    found: list[Value] = []
    for part in node.values:
        value = evaluate(machine, part)
        known = truth_of_value(value)
        if known is None or known is isinstance(node.op, ast.Or) or part is node.values[-1]:
            found.append(value)
        if known is isinstance(node.op, ast.Or):
            break
    return choice(found)


def _compare(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Compare)
    return _decided(machine, node)


def _decided(machine: Machine, test: ast.UnaryOp | ast.Compare) -> Value:
    """The outcome of a test, if it is known."""
    with machine.noting():
        _children(machine, test)
        known = truth(machine, test)
    return Constant(known) if known is not None else Unknown()


def _conditional(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.IfExp)
    with machine.noting():
        evaluate(machine, node.test)
        known = truth(machine, node.test)
        assumed = [assumptions(machine, node.test, outcome) for outcome in (True, False)]
    if known is not None:
        return evaluate(machine, node.body if known else node.orelse)
    values: list[Value] = []
    branch = Branch(node, [])
    for way, expression in zip(assumed, (node.body, node.orelse), strict=True):
        trace: Trace = []
        with machine.recording(trace), machine.conditionally():
            values.append(evaluate(machine, expression))
        branch.ways.append((way, trace))
    if any(trace for _, trace in branch.ways):
        machine.add(branch)
    return choice(values)


def _named(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.NamedExpr)
    value = evaluate(machine, node.value)
    bind(machine, node.target, value)
    return value


def _lambda(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Lambda)
    return LambdaValue(node, machine.frame)


def _comprehension(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp))
    iterated = evaluate(machine, node.generators[0].iter)
    items = _laps(node, iterated)
    if items is None:
        return Group([_comprehended(machine, node, iterated, node.elt)], open=True)
    return Group([_lap(machine, node, item, [node.elt])[0] for item in items])


def _dict_comprehension(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.DictComp)
    iterated = evaluate(machine, node.generators[0].iter)
    items = _laps(node, iterated)
    if items is None:
        return Group([_comprehended(machine, node, iterated, node.value)], open=True)
    pairs = [_lap(machine, node, item, [node.key, node.value]) for item in items]
    keys: list[object] = [key.value for key, _ in pairs if isinstance(key, Constant)]
    values = [value for _, value in pairs]
    is_named = len(set(map(repr, keys))) == len(values)
    return Group(values, keys) if is_named else Group([choice(values)], open=True)


def _laps(node: _Comprehension, iterated: Value) -> list[Value] | None:
    """What a comprehension goes through, if it takes all of a few things that the code names."""
    is_simple = len(node.generators) == 1 and not node.generators[0].ifs
    return spelled_out(iterated) if is_simple else None


def _lap(
    machine: Machine, node: _Comprehension, item: Value, results: list[ast.expr]
) -> list[Value]:
    """Each lap is a loop of its own, as those of unrolled ``for`` statements are."""
    loop = Loop(node, machine.file, Constant(None), Unknown().birth, lap=item)
    bind(machine, node.generators[0].target, item)
    with machine.recording(loop.body):
        values = [evaluate(machine, result) for result in results]
    if loop.body:
        loop.body.append(Jump.BREAK)
        machine.add(loop)
    return values


def _comprehended(
    machine: Machine, node: _Comprehension, iterated: Value, result: ast.expr
) -> Value:
    """Runs as a loop; the whole comprehension is one loop however many ``for`` it has."""
    first, *others = node.generators
    loop = Loop(node, machine.file, iterated, Unknown().birth)
    bind(machine, first.target, each(iterated))
    for generator in others:
        bind(machine, generator.target, each(evaluate(machine, generator.iter)))
    with machine.recording(loop.body):
        for generator in node.generators:
            evaluate_all(machine, generator.ifs)
        value = evaluate(machine, result)
    if loop.body:
        machine.add(loop)
    return value


def each(iterated: Value) -> Value:
    """What a loop variable is bound to when looping over a value."""
    if isinstance(iterated, Choice):
        return choice(each(option) for option in iterated.options)
    if isinstance(iterated, Group):
        return choice(iterated.elements) if iterated.elements else Unknown()
    if isinstance(iterated, Object) and iterated.dotted == "builtins.enumerate":
        return Group([Unknown(), each(iterated.arguments[0]) if iterated.arguments else Unknown()])
    if isinstance(iterated, Object) and iterated.dotted in ("builtins.zip", "itertools.product"):
        return Group([each(argument) for argument in iterated.arguments])
    if isinstance(iterated, Parameters):
        return iterated
    if isinstance(iterated, Generator):
        return Unknown()
    inside = contained(iterated)
    return choice(inside) if inside else element_of(iterated, "[each]")


def _text(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.JoinedStr)
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            evaluate(machine, part.value)
    return Constant("")


def _yield(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.Yield)
    value = evaluate(machine, node.value) if node.value is not None else Constant(None)
    if machine.frame.on_yield is not None:
        machine.frame.on_yield(value)
    return Unknown()


def _yield_from(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, ast.YieldFrom)
    iterated = evaluate(machine, node.value)
    if machine.frame.on_yield is not None:
        loop = Loop(node, machine.file, iterated, Unknown().birth)
        with machine.recording(loop.body):
            machine.frame.on_yield(each(iterated))
        machine.add(loop)
    return Unknown()


def _await(machine: Machine, node: ast.expr) -> Value:
    assert isinstance(node, (ast.Await, ast.Starred))
    return evaluate(machine, node.value)


def _children(machine: Machine, node: ast.expr) -> Value:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(machine, child)
    return Unknown()


_HANDLERS: dict[type[ast.expr], Callable[[Machine, ast.expr], Value]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.List: _display,
    ast.Tuple: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.BinOp: _operation,
    ast.UnaryOp: _unary,
    ast.BoolOp: _either,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.NamedExpr: _named,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.JoinedStr: _text,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
    ast.Starred: _await,
}
