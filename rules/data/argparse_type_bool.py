from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.receivers import assigned_values
from trainlint.analysis.spelling import spelled
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_PARSERS_THAT_READ_BOOLS = ("jsonargparse.", "transformers.", "tap.", "simple_parsing.")
_TAKES_A_TEXT = frozenset({"store", "append", "extend"})
_SHAPES_THE_ARGUMENT = frozenset({"action", "nargs", "const", "choices", "metavar"})


class ArgparseTypeBool(Rule):
    """An argparse option has `type=bool`, which turns every text into True.

    ## What it does
    Reports `add_argument(..., type=bool)` of argparse parsers.

    ## Why is this bad?
    argparse calls `bool("False")`, and a string that is not empty is true: `--amp False` switches
    mixed precision on. The run that should have been without it was not.

    ## Example
    ```python
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", type=bool, default=True)
    ```

    ## Use instead
    ```python
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
    ```

    ## Fix safety
    The fix is unsafe: it changes the command line. With `BooleanOptionalAction` the option takes no
    value, it is `--amp` or `--no-amp`. Where the file has a `str2bool` of its own, that becomes the
    type instead.

    ## References
    - [argparse: type](https://docs.python.org/3/library/argparse.html#type)
    """

    code = "TLD004"
    severity = Severity.ERROR
    scout = identifier("add_argument") & identifier("type") & pattern(rb"\btype\s*=\s*bool\b")
    help = "use `action=argparse.BooleanOptionalAction`, or a type that reads the text"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in file.nodes(ast.Call):
            if (
                isinstance(call.func, ast.Attribute)
                and call.func.attr == "add_argument"
                and (given := _type_of(call)) is not None
                and file.qualified(given) == "builtins.bool"
                and _stores_its_text(call)
                and not _parser_reads_bools(file, call.func.value)
            ):
                option = _option(call)
                yield self.report(
                    given,
                    f"`type=bool` makes every text true: `{option} False` gives True",
                    repair=_repair(file, call, given),
                )


def _stores_its_text(call: ast.Call) -> bool:
    """Whether the option takes a text at all: ``BooleanOptionalAction`` ignores the type."""
    action = next((item.value for item in call.keywords if item.arg == "action"), None)
    return action is None or (isinstance(action, ast.Constant) and action.value in _TAKES_A_TEXT)


def _type_of(call: ast.Call) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == "type"), None)


def _option(call: ast.Call) -> str:
    """The option's longest name, as it is typed."""
    names = [item.value for item in call.args if isinstance(item, ast.Constant)]
    return max((name for name in names if isinstance(name, str)), key=len, default="the option")


def _parser_reads_bools(file: FileModel, parser: ast.expr) -> bool:
    """Whether the parser is of a class that treats ``bool`` in a way of its own."""
    for value in assigned_values(file, parser):
        if isinstance(value, ast.Call):
            dotted = file.qualified(value.func)
            if dotted is not None and dotted.startswith(_PARSERS_THAT_READ_BOOLS):
                return True
            if _redefines_arguments(file, value):
                return True
    return any(_registers_bool(file, call) for call in file.nodes(ast.Call))


def _redefines_arguments(file: FileModel, made: ast.Call) -> bool:
    definition = file.resolve_class(made.func)
    return definition is not None and definition.method("add_argument") is not None


def _registers_bool(file: FileModel, call: ast.Call) -> bool:
    """``parser.register("type", bool, str2bool)`` replaces what the type does."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "register"
        and len(call.args) == 3
        and file.qualified(call.args[1]) == "builtins.bool"
    )


def _repair(file: FileModel, call: ast.Call, given: ast.expr) -> Repair | None:
    reader = next((name for name in file.functions if _reads_bools(name)), None)
    if reader is not None:
        return Repair(
            f"Read the text with `{reader}`",
            Applicability.UNSAFE,
            lambda editor: editor.replace(given, reader),
        )
    action = spelled(file, "argparse.BooleanOptionalAction")
    is_flag = _option(call).startswith("--")
    if (
        action is None
        or not is_flag
        or any(item.arg in _SHAPES_THE_ARGUMENT for item in call.keywords)
    ):
        return None

    def apply(editor: Editor) -> None:
        editor.rename_argument(call, "type", "action")
        editor.replace(given, action)

    return Repair("Use `BooleanOptionalAction`", Applicability.UNSAFE, apply)


def _reads_bools(name: str) -> bool:
    return name.lower().replace("_", "") in {
        "str2bool",
        "strtobool",
        "stringtobool",
        "boolflag",
        "parsebool",
    }
