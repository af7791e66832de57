"""Python lists and dicts of submodules, as attributes of a module: torch does not see into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainlint.analysis.constructors import depends_on_mode, holds_tensors, makes_module
from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.receivers import assigned_values, last_name, unchained
from trainlint.analysis.uses import Use, uses_of_attribute, uses_of_variable

_OWN_BOOKKEEPING = (
    "__setattr__", "parameters", "named_parameters", "modules", "children", "named_children",
    "named_modules", "_apply",
)  # fmt: skip
_REGISTERING = frozenset({"add_module", "register_module", "register_parameter", "setattr"})
_COLLECTED = ("parameters", "state_dict")
_LIST_METHODS = frozenset({"append", "extend", "insert"})
_DICT_METHODS = frozenset({"items", "keys", "values", "update"})


@dataclass(frozen=True)
class ModuleCollection:
    """``self.name = value``, where the value is a plain list or dict of new modules.

    ``container``: the class of ``torch.nn`` that could hold them without other changes to the
    code; None where nothing can.
    """

    name: str
    value: ast.expr
    modules: list[ast.expr]
    container: str | None


def unregistered_modules(definition: ClassDefinition) -> Iterator[ModuleCollection]:
    """Collections whose modules nothing in the class registers in another way."""
    if _keeps_its_own_books(definition):
        return
    collected = _walked_for_parameters(definition)
    for name, assignments in definition.file.attribute_assignments(definition.node).items():
        uses = list(uses_of_attribute(definition.file, definition.node, name))
        if any(use.escapes for use in uses) or any(f".{name}" in text for text in collected):
            continue
        for statement, method in assignments:
            modules = _new_modules(definition.file, statement.value, method, uses)
            if modules and statement.value is not None:
                yield ModuleCollection(
                    name,
                    statement.value,
                    modules,
                    _container(definition.file, statement.value, uses),
                )


def _new_modules(
    file: FileModel, value: ast.expr | None, method: FunctionDefinition, uses: list[Use]
) -> list[ast.expr]:
    """The expressions that make the modules of a collection; empty if it is none."""
    appended = [argument for use in uses for argument in _appended(use)]
    if _is_empty_dict(file, value):
        put = (_put(file, use) for use in uses)
        return [item for item in put if item is not None and _is_new_module(file, item)]
    if isinstance(value, ast.Name):
        return _in_local_list(file, value, method)
    if _is_empty_list(file, value):
        return [item for item in appended if _is_new_module(file, item)]
    elements = _elements(value)
    is_hidden = isinstance(value, ast.List) and len(elements) == 1 and not appended
    if is_hidden or not elements or not _is_new_module(file, elements[0]):
        return []
    return elements


def _in_local_list(file: FileModel, name: ast.Name, method: FunctionDefinition) -> list[ast.expr]:
    """``layers = []``, ``layers.append(Layer())`` and then ``self.layers = layers``."""
    made = list(assigned_values(file, name))
    uses = [use for use in uses_of_variable(file, method.node, name.id) if use.node is not name]
    if len(made) != 1 or not _is_empty_list(file, made[0]) or any(use.escapes for use in uses):
        return []
    return [
        item
        for use in uses
        for item in _appended(use)
        if isinstance(item, ast.Call) and item.lineno < name.lineno and _is_new_module(file, item)
    ]


def _elements(value: ast.expr | None) -> list[ast.expr]:
    """What a display or comprehension holds; of a dict, its values."""
    if isinstance(value, ast.List):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, ast.DictComp) else []


def _is_empty_list(file: FileModel, value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return file.qualified(value.func) == "builtins.list" and not value.args
    return isinstance(value, ast.List) and not value.elts


def _is_empty_dict(file: FileModel, value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        is_dict = file.qualified(value.func) in ("builtins.dict", "collections.OrderedDict")
        return is_dict and not value.args and not value.keywords
    return isinstance(value, ast.Dict) and not value.values


def _put(file: FileModel, use: Use) -> ast.expr | None:
    """``layer`` of ``self.layers[name] = layer``."""
    item = file.index.parents.get(use.node)
    statement = file.index.parents.get(item) if isinstance(item, ast.Subscript) else None
    is_put = isinstance(statement, ast.Assign) and statement.targets == [item]
    return statement.value if is_put and isinstance(statement, ast.Assign) else None


def _appended(use: Use) -> list[ast.expr]:
    is_append = use.method is not None and last_name(use.method.func) == "append"
    return use.method.args if is_append and use.method is not None else []


def _is_new_module(file: FileModel, element: ast.expr) -> bool:
    """Whether an element is a module made here that belongs to the network.

    Modules that come from elsewhere may be registered elsewhere; those put into eval mode or
    frozen at once are helpers that are kept out on purpose. Classes are told by their capital.
    """
    if isinstance(element, ast.IfExp):
        element = element.body
    if isinstance(element, (ast.List, ast.Tuple)):
        return bool(element.elts) and _is_new_module(file, element.elts[0])
    if isinstance(element, ast.Name):
        made = list(assigned_values(file, element))
        return (
            bool(made)
            and not _is_also_attribute(file, element)
            and all(isinstance(value, ast.Call) and _is_new_module(file, value) for value in made)
        )
    made_class = unchained(element)
    return (
        isinstance(made_class, ast.Call)
        and last_name(made_class.func)[:1].isupper()
        and makes_module(file, element)
        and (holds_tensors(file, element) or depends_on_mode(file, element))
        and not _is_frozen(element)
    )


def _is_frozen(element: ast.expr) -> bool:
    while isinstance(element, ast.Call) and isinstance(element.func, ast.Attribute):
        if element.func.attr in ("eval", "requires_grad_"):
            return True
        element = element.func.value
    return False


def _is_also_attribute(file: FileModel, element: ast.Name) -> bool:
    """``self.layer = layer`` registers the element that the list also holds."""
    function = file.index.enclosing_function(element)
    return function is not None and any(
        use.escapes
        for use in uses_of_variable(file, function, element.id)
        if use.node is not element and not _is_appended(file, use.node)
    )


def _is_appended(file: FileModel, node: ast.expr) -> bool:
    parent = file.index.parents.get(node)
    return isinstance(parent, ast.Call) and last_name(parent.func) == "append"


def _keeps_its_own_books(definition: ClassDefinition) -> bool:
    """Whether the class registers modules by hand, or finds its parameters in a way of its own."""
    if any(definition.method(name) is not None for name in _OWN_BOOKKEEPING):
        return True
    return any(
        any(
            last_name(call.func) in _REGISTERING
            for call in ancestor.file.index.nodes_in(ancestor.node, ast.Call)
        )
        or any(
            node.attr in ("_modules", "__dict__")
            for node in ancestor.file.index.nodes_in(ancestor.node, ast.Attribute)
        )
        for ancestor in definition.ancestors()
    )


def _walked_for_parameters(definition: ClassDefinition) -> list[str]:
    """What loops walk through that collect parameters themselves, or register the elements."""
    index = definition.file.index
    loops: list[tuple[ast.AST, list[ast.expr]]] = [
        (node, [node.iter]) for node in index.nodes_in(definition.node, ast.For)
    ]
    comprehensions: list[ast.ListComp | ast.GeneratorExp] = [
        *index.nodes_in(definition.node, ast.ListComp),
        *index.nodes_in(definition.node, ast.GeneratorExp),
    ]
    loops += [(node, [item.iter for item in node.generators]) for node in comprehensions]
    return [
        ast.unparse(item)
        for loop, walked in loops
        if any(node.attr in _COLLECTED for node in index.nodes_in(loop, ast.Attribute))
        and any(f".{method}()" in ast.unparse(loop) for method in _COLLECTED)
        for item in walked
    ]


def _container(file: FileModel, value: ast.expr, uses: list[Use]) -> str | None:
    called = {last_name(use.method.func) for use in uses if use.method is not None}
    parts = [*_elements(value), *(argument for use in uses for argument in _appended(use))]
    if not all(
        isinstance(part, (ast.Call, ast.Name))
        and (makes_module(file, part) or _is_new_module(file, part))
        for part in parts
    ):
        return None
    if _is_empty_dict(file, value):
        return None
    if isinstance(value, (ast.List, ast.ListComp, ast.Name, ast.Call)):
        return "ModuleList" if called <= _LIST_METHODS else None
    has_names = (
        isinstance(value, ast.Dict)
        and bool(value.keys)
        and all(
            isinstance(key, ast.Constant) and isinstance(key.value, str) and "." not in key.value
            for key in value.keys
        )
    )
    return "ModuleDict" if has_names and called <= _DICT_METHODS else None
