from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlint.analysis import ClassDefinition, FileModel, FunctionDefinition
from trainlint.analysis.constructors import makes_module
from trainlint.analysis.receivers import last_name
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

_SET = rb"\w+\.(?:\w+(?:[ \t]*,[ \t]*\w+\.\w+)*\s*[:=][^\n]*[(\\]|(?:register_\w+|add_module)\()"
# All lines of the signature at once, or its first; held fast, without trying the other again.
_SIGNATURE = (
    rb"(?=([ \t]*\([^()#]*(?:\([^()#]*(?:\([^()#]*\)[^()#]*)*\)[^()#]*)*\)[^\n]*\n|[^\n]*\n))\1"
)
_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.Buffer"})
_REGISTERS = frozenset({"register_buffer", "register_parameter", "register_module", "add_module"})


class MissingSuperInit(Rule):
    """A module's `__init__` does not call that of its base, or calls it too late.

    ## What it does
    Reports an `__init__` of an `nn.Module` that never calls the one of its base class, and a
    submodule or parameter that is set before the call.

    ## Why is this bad?
    `nn.Module.__init__` makes the registries that submodules, parameters and hooks live in. Without
    it, setting a submodule raises "cannot assign module before Module.__init__() call", and calling
    the module raises an `AttributeError`.

    ## Example
    ```python
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)
    ```

    ## Use instead
    ```python
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)
    ```

    ## Fix safety
    The fix is safe: it makes `super().__init__()` the first statement.

    ## References
    - [torch.nn.Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
    """

    code = "TLN003"
    severity = Severity.ERROR
    # From a ``def __init__(...)`` to the first line that is a call of another ``__init__``: either
    # there is none before the next definition, or something with a call in it is set on the way.
    scout = identifier("forward", "training_step", "nn") & pattern(
        rb"def[ \t]+__init__" + _SIGNATURE + rb"(?:(?![ \t]*(?:"
        rb"(?:def|class|async)\b|super\(|[\w.]+\.__init__\(|" + _SET + rb"))[^\n]*\n)*"
        rb"(?:[ \t]*(?:(?:def|class|async)\b|" + _SET + rb")|[^\n]*\Z)"
    )
    help = "call `super().__init__()` first"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for definition in file.classes.values():
            constructor = definition.own_methods.get("__init__")
            if constructor is None or not _is_made_as_usual(definition):
                continue
            first_call = _first_call_of_base(constructor)
            if first_call is None:
                if _works(definition) and not _is_initialised_elsewhere(definition):
                    yield self._missing(definition, constructor)
            else:
                yield from self._late(file, constructor, first_call)

    def _missing(self, definition: ClassDefinition, constructor: FunctionDefinition) -> Report:
        return self.report(
            constructor.node,
            f"`{definition.name}.__init__` never calls `super().__init__()`: "
            "the module cannot hold submodules and cannot be called",
            repair=Repair(
                "Call `super().__init__()` first",
                Applicability.SAFE,
                lambda editor: editor.insert_first(constructor.node, "super().__init__()"),
            ),
        )

    def _late(
        self, file: FileModel, constructor: FunctionDefinition, call: ast.Call
    ) -> Iterator[Report]:
        statement = file.index.statement(call)
        for assignment in _set_before(file, constructor, statement):
            yield self.report(
                assignment,
                f"this is set before `super().__init__()` (line {call.lineno}), which raises an "
                "AttributeError",
                repair=_repair_of_late_call(constructor, statement, call),
            )
            return


def _is_made_as_usual(definition: ClassDefinition) -> bool:
    """Whether a class is a module that nothing else makes or initialises.

    Metaclasses and decorators, but for those of a registry, may write or wrap ``__init__``, and
    ``__new__`` may call what is needed.
    """
    decorators = map(ast.unparse, definition.node.decorator_list)
    is_made_otherwise = (
        not all("regist" in text.lower() for text in decorators)
        or definition.own_methods["__init__"].node.decorator_list
        or definition.node.keywords
        or any(definition.method(name) for name in ("__new__", "__setattr__", "__getattr__"))
    )
    return definition.is_module and not is_made_otherwise


def _works(definition: ClassDefinition) -> bool:
    """Whether a class is meant to be used itself: it computes something."""
    return any(
        name in definition.own_methods and not _only_raises(definition.own_methods[name])
        for name in ("forward", "training_step")
    )


def _first_call_of_base(constructor: FunctionDefinition) -> ast.Call | None:
    """The first ``super().__init__(...)``, ``Base.__init__(self)`` or the like."""
    calls = [
        node
        for node in ast.walk(constructor.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
    ]
    return min(calls, key=lambda call: call.lineno, default=None)


def _only_raises(method: FunctionDefinition) -> bool:
    return all(isinstance(item, (ast.Raise, ast.Pass, ast.Expr)) for item in method.node.body)


def _is_initialised_elsewhere(definition: ClassDefinition) -> bool:
    """Whether ``__init__`` does nothing, or hands ``self`` on, or helpers call an ``__init__``."""
    constructor = definition.own_methods["__init__"]
    if _only_raises(constructor) or not constructor.parameters:
        return True
    own_name = constructor.parameters[0].arg
    hands_on = any(
        isinstance(argument, ast.Name) and argument.id == own_name
        for call in ast.walk(constructor.node)
        if isinstance(call, ast.Call) and last_name(call.func) != "super"
        for argument in [*call.args, *(item.value for item in call.keywords)]
    )
    helpers = (
        _first_call_of_base(method)
        for ancestor in definition.ancestors()
        for name, method in ancestor.own_methods.items()
        if name != "__init__"
    )
    return hands_on or any(call is not None for call in helpers)


def _set_before(
    file: FileModel, constructor: FunctionDefinition, call: ast.stmt
) -> Iterator[ast.stmt]:
    """Where submodules, parameters and buffers are set above the call, if it is always reached."""
    if call not in constructor.node.body:
        return
    own_name = constructor.parameters[0].arg
    above = constructor.node.body[: constructor.node.body.index(call)]
    for statement in _with_those_inside(above):
        values = _set_on(own_name, statement)
        if _registers(own_name, statement) or any(_is_held(file, value) for value in values):
            yield statement


def _with_those_inside(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in block:
        yield statement
        if isinstance(statement, (ast.If, ast.For, ast.While, ast.With)):
            yield from _with_those_inside(statement.body)
            yield from _with_those_inside(getattr(statement, "orelse", []))


def _set_on(own_name: str, statement: ast.stmt) -> Iterator[ast.expr]:
    """The values that a statement sets as attributes of the object."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        value = statement.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        yield from (item for part, item in pairs if _is_own(own_name, part))


def _is_own(own_name: str, target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == own_name
    )


def _is_held(file: FileModel, value: ast.expr) -> bool:
    """Whether a value goes to the registries when it is set on a module."""
    is_parameter = isinstance(value, ast.Call) and file.qualified(value.func) in _PARAMETERS
    return is_parameter or makes_module(file, value)


def _registers(own_name: str, statement: ast.stmt) -> bool:
    """``self.register_buffer(...)`` and its like."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _REGISTERS
        and _is_own(own_name, call.func)
    )


def _repair_of_late_call(
    constructor: FunctionDefinition, statement: ast.stmt, call: ast.Call
) -> Repair | None:
    """Move the call to the top, if it needs nothing that is computed above it."""
    if call.args or call.keywords or not isinstance(statement, ast.Expr):
        return None
    first = constructor.node.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    place = constructor.node.body[1] if has_docstring else first
    return Repair(
        "Move the call to the top",
        Applicability.SAFE,
        lambda editor: editor.move_before(statement, place),
    )
