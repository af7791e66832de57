"""Attributes and items: reading and writing what hangs on a value."""

from __future__ import annotations

import ast

from trainlint.analysis.interpreter.machine import Frame, Machine
from trainlint.analysis.knowledge import modules, training
from trainlint.analysis.names import canonical
from trainlint.analysis.roles import Role, has_role
from trainlint.analysis.trace import EventKind
from trainlint.analysis.values import (
    Choice,
    ClassValue,
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
    choice,
    contained,
    give_name,
    without_none,
)

_LOADER_PARTS = {"dataset": 0, "sampler": 3, "batch_sampler": 4}
_SAME_TENSOR = frozenset({"T", "mT", "H", "mH", "real"})


def attribute_of(machine: Machine, value: Value, name: str, node: ast.AST) -> Value:
    """``value.name``."""
    value = without_none(value)
    if isinstance(value, Choice):
        return choice(attribute_of(machine, option, name, node) for option in value.options)
    if name in value.members:
        return value.members[name]
    found = _known_attribute(machine, value, name, node)
    if found is None:
        found = Unknown(hint=name, parent=value)
        value.members[name] = found
    return found


def set_attribute(
    machine: Machine, value: Value, name: str, assigned: Value, node: ast.Attribute
) -> None:
    """``value.name = assigned``."""
    if isinstance(value, Choice):
        for option in value.options:
            set_attribute(machine, option, name, assigned, node)
        return
    if name == "grad":
        machine.emit(EventKind.ZERO_GRAD, node, value)
        return
    give_name(assigned, name)
    if isinstance(value, Instance) and isinstance(assigned, Constant):
        _forget_outputs(machine, value.members.get(name), assigned)
    is_replaced_layer = isinstance(value, Object) and value.dotted.startswith("torchvision.models.")
    is_flag = isinstance(assigned, Constant) and isinstance(assigned.value, bool)
    if machine.conditional_depth and (name in value.members or is_replaced_layer or is_flag):
        held = value.members.get(name) or Unknown(hint=name, parent=value)
        assigned = choice([held, assigned])
    value.members[name] = assigned
    machine.emit(EventKind.SET, node, value, (assigned,))


def _forget_outputs(machine: Machine, old: Value | None, new: Constant) -> None:
    """A flag that changes may change what modules return."""
    if old is not None and not (isinstance(old, Constant) and old.value == new.value):
        machine.forward_results.clear()


def element_of(value: Value, key: str) -> Value:
    """One element of a container that the model cannot open, the same for the same key."""
    if isinstance(value, Choice):
        return choice(element_of(option, key) for option in value.options)
    if isinstance(value, Tensor):
        return Tensor(
            value.origins, value.modules, value.activation, value.activated_at, value.detached
        )
    are_loaders = isinstance(value, Unknown) and value.hint.lower().endswith("loaders")
    if has_role(value, Role.LOADER) and not are_loaders:
        return Tensor(origins=frozenset({"batch"}), hint="batch")
    if key not in value.members:
        hint = "" if are_loaders else value.hint.removesuffix("s")
        value.members[key] = Unknown(hint=hint, parent=value, varies=key == "[each]")
    return value.members[key]


def item_of(value: Value, index: ast.expr) -> Value:
    """``value[index]``."""
    if isinstance(value, Choice):
        return choice(item_of(option, index) for option in value.options)
    if isinstance(value, Group):
        return _item_of_group(value, index)
    if isinstance(value, Parameters):
        key = index.value if isinstance(index, ast.Constant) else None
        return Unknown(hint=str(key)) if key in training.GROUP_SETTINGS else value
    if isinstance(value, Object) and value.dotted == "torch.nn.Sequential":
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            inside = value.arguments
            return inside[index.value] if -len(inside) <= index.value < len(inside) else Unknown()
        return Unknown(hint="module", parent=value)
    held = contained(value)
    if held and isinstance(value, Object):
        only = value.arguments[0] if len(value.arguments) == 1 else None
        return _item_of_group(only if isinstance(only, Group) else Group(held, open=True), index)
    item = element_of(value, f"[{ast.unparse(index)}]")
    if (
        isinstance(item, Tensor)
        and isinstance(index, ast.Constant)
        and isinstance(index.value, str)
    ):
        item.hint = index.value
    return item


def set_item(machine: Machine, container: Value, target: ast.Subscript, value: Value) -> None:
    """``container[index] = value``."""
    if isinstance(container, Group):
        if container.keys is not None and isinstance(target.slice, ast.Constant):
            if machine.conditional_depth > container.depth:
                value = choice([_item_of_group(container, target.slice), value])
            container.keys.append(target.slice.value)
            container.elements.append(value)
        else:
            container.elements.append(value)
            if container.keys is not None:
                container.keys.append(Unknown())
            container.open = True
            container.last_is_sure = False
        return
    if isinstance(container, Choice):
        for option in container.options:
            set_item(machine, option, target, value)
        return
    key = f"[{ast.unparse(target.slice)}]"
    if not isinstance(container, Tensor):
        container.members[key] = value
        machine.emit(EventKind.SET, target, container, (value,))


def _item_of_group(group: Group, index: ast.expr) -> Value:
    if isinstance(index, ast.Slice):
        ends_there = group.last_is_sure and index.upper is None and index.step is None
        return Group(list(group.elements), open=True, last_is_sure=ends_there)
    if isinstance(index, ast.Constant):
        if group.keys is not None and index.value in group.keys:
            position = len(group.keys) - 1 - group.keys[::-1].index(index.value)
            return group.elements[position]
        inside = isinstance(index.value, int) and -len(group.elements) <= index.value < len(
            group.elements
        )
        if group.keys is None and not group.open and inside:
            assert isinstance(index.value, int)
            return group.elements[index.value]
    return (
        choice(group.elements) if group.elements else element_of(group, f"[{ast.unparse(index)}]")
    )


def _known_attribute(machine: Machine, value: Value, name: str, node: ast.AST) -> Value | None:
    if isinstance(value, Instance):
        return _of_instance(machine, value, name, node)
    if isinstance(value, External):
        return machine.definition_value(canonical(f"{value.dotted}.{name}"))
    if isinstance(value, ClassValue):
        method = value.definition.method(name)
        if method is not None:
            return FunctionValue(method, closure=machine.module_environment(method.file))
        return _class_attribute(machine, value, name)
    if isinstance(value, Object):
        return _of_object(machine, value, name, node)
    if isinstance(value, Tensor):
        return _of_tensor(value, name)
    if name == "module" and has_role(value, Role.MODULE):
        return value
    return None


def _of_object(machine: Machine, value: Object, name: str, node: ast.AST) -> Value | None:
    if value.dotted in modules.WRAPPERS and value.arguments:
        inside = value.arguments[0]
        if name == "module" and value.dotted in modules.DISTRIBUTED_WRAPPERS:
            return inside
        return attribute_of(machine, inside, name, node)
    if value.dotted in training.LOADER_CLASSES and name in _LOADER_PARTS:
        found = value.argument(_LOADER_PARTS[name], name)
        if found is None and name == "sampler":
            return value.argument(_LOADER_PARTS["batch_sampler"], "batch_sampler")
        return found
    if name == "param_groups":
        return Parameters(value.argument(0, "params") or value, value.node)
    return None


def _of_tensor(value: Tensor, name: str) -> Value | None:
    if name == "data":
        return Tensor(value.origins, value.modules, value.activation, value.activated_at, True)
    if name in _SAME_TENSOR:
        return value
    if name in ("loss", "logits", "last_hidden_state", "sample", "prev_sample"):
        return Tensor(
            value.origins,
            value.modules,
            is_loss=name == "loss",
            detached=value.detached,
            hint=name,
        )
    if name in ("shape", "device", "dtype", "ndim", "grad", "is_cuda", "requires_grad"):
        return Unknown(hint=name)
    return Tensor(value.origins, value.modules, detached=value.detached, hint=name)


def _of_instance(machine: Machine, value: Instance, name: str, node: ast.AST) -> Value | None:
    definition = value.definition
    method = definition.method(name)
    if method is not None:
        bound = FunctionValue(method, value, machine.module_environment(method.file))
        if method.is_property:
            from trainlint.analysis.interpreter.calls import run_function

            return run_function(machine, bound, [], {}, node)
        return bound
    if name == "module" and has_role(value, Role.MODULE):
        return value
    found = _assigned_elsewhere(machine, value, name)
    return found if found is not None else _class_attribute(machine, ClassValue(definition), name)


def _assigned_elsewhere(machine: Machine, value: Instance, name: str) -> Value | None:
    """What some method that has not run yet assigns to the attribute."""
    from trainlint.analysis.interpreter.expressions import evaluate

    found: list[Value] = []
    for ancestor in value.definition.ancestors():
        for statement, method in ancestor.file.attribute_assignments(ancestor.node).get(name, []):
            if statement.value is None or machine.exhausted or method in machine.active:
                continue
            environment = machine.symbolic_parameters(method, value)
            frame = Frame(ancestor.file, environment, method, value)
            machine.active.append(method)
            try:
                with machine.inside(frame), machine.muted():
                    item = evaluate(machine, statement.value)
            finally:
                machine.active.pop()
            if not (isinstance(item, Constant) and item.value is None):
                give_name(item, name)
                found.append(item)
        if found:
            break
    if not found:
        return None
    value.members[name] = choice(found[:4])
    return value.members[name]


def _class_attribute(machine: Machine, value: ClassValue, name: str) -> Value | None:
    from trainlint.analysis.interpreter.expressions import evaluate

    for ancestor in value.definition.ancestors():
        for statement in ancestor.node.body:
            is_it = isinstance(statement, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in statement.targets
            )
            if is_it:
                assert isinstance(statement, ast.Assign)
                frame = Frame(ancestor.file, machine.module_environment(ancestor.file))
                with machine.inside(frame), machine.muted():
                    return evaluate(machine, statement.value)
    return None
