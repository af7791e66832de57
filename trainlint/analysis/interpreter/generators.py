"""Generator functions run where they are consumed: the consumer's body stands at each yield."""

from __future__ import annotations

from collections.abc import Callable

from trainlint.analysis.interpreter.machine import MAX_CALL_DEPTH, Frame, Machine
from trainlint.analysis.trace import Call, EventKind
from trainlint.analysis.values import Generator, Unknown, Value


def run_generator(machine: Machine, generator: Generator, body: Callable[[Value], None]) -> None:
    """Run a generator function with ``body`` in place of its yields, in the consumer's frame."""
    from trainlint.analysis.interpreter.calls import bound_parameters
    from trainlint.analysis.interpreter.statements import run_block

    function = generator.function
    definition = function.definition
    if definition in machine.active or len(machine.active) >= MAX_CALL_DEPTH or machine.exhausted:
        machine.emit(EventKind.OPAQUE, generator.node, function, tuple(generator.arguments))
        body(Unknown())
        return
    consumer = machine.frame
    yielded = False

    def on_yield(value: Value) -> None:
        nonlocal yielded
        yielded = True
        with machine.inside(consumer):
            body(value)

    environment = bound_parameters(machine, function, generator.arguments, generator.keywords)
    step = Call(generator.node, machine.file, definition)
    frame = Frame(definition.file, environment, definition, function.receiver, on_yield=on_yield)
    machine.active.append(definition)
    machine.entered.add(definition)
    try:
        with machine.inside(frame), machine.recording(step.body):
            run_block(machine, definition.node.body)
    finally:
        machine.active.pop()
    machine.add(step)
    if not yielded:
        body(Unknown())
