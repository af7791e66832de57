"""Calls: into functions and classes of the project in place, into libraries by their effect."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.interpreter.attributes import attribute_of
from trainlint.analysis.interpreter.conditions import choosing
from trainlint.analysis.interpreter.environment import Environment
from trainlint.analysis.interpreter.expressions import evaluate, evaluate_all, mix
from trainlint.analysis.interpreter.library import call_library
from trainlint.analysis.interpreter.machine import MAX_CALL_DEPTH, Frame, Machine
from trainlint.analysis.interpreter.methods import call_method, is_verb
from trainlint.analysis.interpreter.module_calls import call_module
from trainlint.analysis.interpreter.scopes import decorator_scopes
from trainlint.analysis.knowledge.training import looks_like_constructor
from trainlint.analysis.receivers import last_name
from trainlint.analysis.relevance import is_plain, matters, speaks_of_training
from trainlint.analysis.roles import Role, has_role, unseen_result
from trainlint.analysis.trace import Branch, Call, EventKind, Scope, Trace
from trainlint.analysis.values import (
    Choice,
    ClassValue,
    Constant,
    External,
    FunctionValue,
    Generator,
    Group,
    Instance,
    LambdaValue,
    Unknown,
    Value,
    choice,
    without_none,
)


def call(machine: Machine, node: ast.Call) -> Value:
    """The value of a call; what it does is written to the trace."""
    function = node.func
    if isinstance(function, ast.Attribute):
        if _is_super(function.value):
            return _call_super(machine, node, function.attr)
        receiver = evaluate(machine, function.value)
        arguments, keywords = evaluate_arguments(machine, node)
        if isinstance(receiver, (External, ClassValue)):
            callee = attribute_of(machine, receiver, function.attr, function)
            return call_value(machine, callee, arguments, keywords, node)
        return call_method(machine, receiver, function.attr, arguments, keywords, node)
    callee = evaluate(machine, function)
    arguments, keywords = evaluate_arguments(machine, node)
    return call_value(machine, callee, arguments, keywords, node)


def evaluate_arguments(machine: Machine, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
    """Positional and keyword arguments; those of ``**mapping`` under ``**``."""
    arguments = evaluate_all(machine, node.args)
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(machine, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, Group) and value.keys is not None:
            for key, element in zip(value.keys, value.elements, strict=False):
                keywords[str(key)] = element
        else:
            keywords["**"] = value
    return arguments, keywords


def call_value(
    machine: Machine,
    callee: Value,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """Call a value that has already been evaluated."""
    callee = without_none(callee)
    if isinstance(callee, Choice):
        return _call_choice(machine, callee, arguments, keywords, node)
    if isinstance(callee, FunctionValue):
        return run_function(machine, callee, arguments, keywords, node)
    if isinstance(callee, LambdaValue):
        return _run_lambda(machine, callee, arguments)
    if isinstance(callee, ClassValue):
        return construct(machine, callee, arguments, keywords, node)
    if isinstance(callee, External):
        return call_library(machine, callee.dotted, arguments, keywords, node)
    if isinstance(callee, Instance) and not callee.definition.is_module:
        method = callee.definition.method("__call__")
        if method is not None:
            bound = FunctionValue(method, callee, machine.module_environment(method.file))
            return run_function(machine, bound, arguments, keywords, node)
    is_made = isinstance(callee, Unknown) and looks_like_constructor(last_name(node.func))
    if not is_made and (has_role(callee, Role.MODULE) or has_role(callee, Role.LOSS_FUNCTION)):
        return call_module(machine, callee, arguments, keywords, node)
    if isinstance(callee, Unknown) and callee.parent is not None and is_verb(callee.hint):
        return call_method(machine, callee.parent, callee.hint, arguments, keywords, node)
    machine.emit(EventKind.OPAQUE, node, callee, (*_handed(callee), *arguments, *keywords.values()))
    return Unknown()


def _handed(callee: Value) -> tuple[Value, ...]:
    """What an unseen callee has in its hands itself: of ``getattr(model, name)`` the model too."""
    is_some_attribute = isinstance(callee, Unknown) and callee.parent is not None
    if is_some_attribute and not callee.hint:
        assert isinstance(callee, Unknown)
        assert callee.parent is not None
        return (callee, callee.parent)
    return (callee,)


def run_function(
    machine: Machine,
    function: FunctionValue,
    arguments: Sequence[Value],
    keywords: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Run a function of the project in place, or leave an opaque event where that is too deep."""
    definition = function.definition
    if definition.is_generator and isinstance(node, ast.Call):
        return Generator(function, list(arguments), keywords, node)
    if _is_irrelevant(function, arguments, keywords):
        return unseen_result(definition.name)
    too_deep = definition in machine.active or len(machine.active) >= MAX_CALL_DEPTH
    if too_deep or machine.exhausted:
        held = (*arguments, *keywords.values(), *([function.receiver] if function.receiver else []))
        machine.emit(EventKind.OPAQUE, node, function, held)
        return unseen_result(definition.name)
    environment = bound_parameters(machine, function, arguments, keywords)
    return run_body(machine, function, environment, node)


def _is_irrelevant(
    function: FunctionValue, arguments: Sequence[Value], keywords: dict[str, Value]
) -> bool:
    """Neither the function nor what it is handed has to do with training."""
    if function.receiver is not None or function.definition.name == "__init__":
        return False
    everything = [*arguments, *keywords.values()]
    return all(map(is_plain, everything)) and not matters(function.definition)


def run_body(
    machine: Machine, function: FunctionValue, environment: Environment, node: ast.AST
) -> Value:
    """Run a function whose parameters are bound."""
    from trainlint.analysis.interpreter.statements import run_block

    definition = function.definition
    step = Call(node, machine.file, definition)
    frame = Frame(definition.file, environment, definition, function.receiver)
    machine.active.append(definition)
    machine.entered.add(definition)
    try:
        with machine.inside(frame):
            scopes = decorator_scopes(definition)
            trace = _enter_scopes(scopes, definition, step.body)
            kind = scopes[-1][0] if scopes else ""
            with machine.recording(trace), machine.gradients_as(kind):
                run_block(machine, definition.node.body)
    finally:
        machine.active.pop()
    if step.body:
        machine.add(step)
    return choice(frame.returned) if frame.returned else Constant(None)


def _enter_scopes(
    scopes: list[tuple[str, ast.expr]], definition: FunctionDefinition, outer: Trace
) -> Trace:
    """The trace inside the scopes that the function's decorators open."""
    trace = outer
    for kind, decorator in scopes:
        scope = Scope(kind, decorator, definition.file, None)
        trace.append(scope)
        trace = scope.body
    return trace


def bound_parameters(
    machine: Machine,
    function: FunctionValue,
    arguments: Sequence[Value],
    keywords: dict[str, Value],
) -> Environment:
    """The function's environment with its parameters bound; missing ones take their defaults."""
    definition = function.definition
    parent = function.closure or machine.module_environment(definition.file)
    environment = Environment(parent)
    positional = list(arguments)
    if function.receiver is not None and not definition.is_static:
        positional.insert(0, function.receiver)
    names = [parameter.arg for parameter in definition.parameters]
    for name, value in zip(names, positional, strict=False):
        environment.values[name] = value
    keyword_only = {parameter.arg for parameter in definition.node.args.kwonlyargs}
    for name, value in keywords.items():
        if name in names or name in keyword_only:
            environment.values[name] = value
    _bind_rest(machine, definition, environment, positional[len(names) :], keywords)
    return environment


def _bind_rest(
    machine: Machine,
    definition: FunctionDefinition,
    environment: Environment,
    surplus: list[Value],
    keywords: dict[str, Value],
) -> None:
    arguments = definition.node.args
    for parameter, default in _defaults(arguments):
        if parameter.arg in environment.values:
            continue
        if "**" in keywords or default is None:
            annotation = (
                definition.file.qualified(parameter.annotation) if parameter.annotation else None
            )
            environment.values[parameter.arg] = Unknown(hint=parameter.arg, annotation=annotation)
        else:
            frame = Frame(definition.file, machine.module_environment(definition.file))
            with machine.inside(frame), machine.muted():
                environment.values[parameter.arg] = evaluate(machine, default)
    if arguments.vararg is not None:
        environment.values[arguments.vararg.arg] = Group(surplus)
    if arguments.kwarg is not None:
        known = {parameter.arg for parameter, _ in _defaults(arguments)}
        rest = {name: value for name, value in keywords.items() if name not in known}
        environment.values[arguments.kwarg.arg] = Group(list(rest.values()), keys=list(rest))


def _defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = list(zip(positional, [*missing, *arguments.defaults], strict=True))
    return [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]


def construct(
    machine: Machine,
    cls: ClassValue,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """Make an object of a class of the project and run its constructor."""
    held = [*arguments, *keywords.values()]
    instance = Instance(cls.definition, node, arguments=held)
    method = cls.definition.method("__init__")
    if method is not None:
        bound = FunctionValue(method, instance, machine.module_environment(method.file))
        if cls.definition.is_module and not speaks_of_training(method):
            instance.postponed = lambda: _construct_later(machine, bound, arguments, keywords, node)
        else:
            run_function(machine, bound, arguments, keywords, node)
    machine.emit(EventKind.NEW, node, instance, tuple(held))
    return instance


def _construct_later(
    machine: Machine,
    constructor: FunctionValue,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> None:
    """What a network's constructor builds matters only to those who look inside."""
    with machine.muted(), machine.apart():
        run_function(machine, constructor, arguments, keywords, node)


def construct_symbolic(machine: Machine, instance: Instance) -> None:
    """Run the constructor with unknown arguments, in a trace of its own."""
    method = instance.definition.method("__init__")
    if method is None or method in machine.active:
        return
    environment = machine.symbolic_parameters(method, instance)
    closure = machine.module_environment(method.file)
    with machine.recording(machine.construction_of(instance.definition)):
        run_body(machine, FunctionValue(method, instance, closure), environment, method.node)


def _call_choice(
    machine: Machine,
    callee: Choice,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    branch = Branch(node, [])
    results: list[Value] = []
    for option in callee.options:
        trace: Trace = []
        with machine.recording(trace), machine.conditionally():
            results.append(call_value(machine, option, arguments, keywords, node))
        branch.ways.append((choosing(callee, option), trace))
    if any(trace for _, trace in branch.ways):
        machine.add(branch)
    return choice(results)


def _run_lambda(machine: Machine, function: LambdaValue, arguments: list[Value]) -> Value:
    made_in = function.frame
    environment = Environment(made_in.environment)
    for parameter, value in zip(function.node.args.args, arguments, strict=False):
        environment.values[parameter.arg] = value
    if len(machine.active) >= MAX_CALL_DEPTH or machine.exhausted:
        return Unknown()
    frame = Frame(made_in.file, environment, made_in.function, made_in.receiver)
    with machine.inside(frame):
        return evaluate(machine, function.node.body)


def _is_super(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def _call_super(machine: Machine, node: ast.Call, name: str) -> Value:
    arguments, keywords = evaluate_arguments(machine, node)
    receiver, function = machine.frame.receiver, machine.frame.function
    if isinstance(receiver, Instance) and function is not None and function.owner is not None:
        method = receiver.definition.method_after(function.owner, name)
        if method is not None:
            bound = FunctionValue(method, receiver, machine.module_environment(method.file))
            return run_function(machine, bound, arguments, keywords, node)
        if name == "__init__":
            receiver.layers = arguments
        if name in ("train", "eval", "zero_grad", "step"):
            return call_method(machine, receiver, name, arguments, keywords, node, inherited=True)
    return mix(*arguments)
