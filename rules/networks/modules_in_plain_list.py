from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.plain_lists import ModuleCollection, unregistered_modules
from trainlint.analysis.receivers import last_name
from trainlint.analysis.spelling import spelled
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_HIDDEN_ON_PURPOSE = re.compile(
    r"teacher|frozen|freeze|(^|_)ema(_|$)|hid(e|den from|ing)|regist|state_dict|on purpose|"
    r"not? (be )?(train|save|move)|avoid|perceptual|pretrain|workaround|\bno grad",
    re.IGNORECASE,
)
_LINES_ABOVE = 2
# What the scout looks for, each time first by a part that is quick to find.
_NEW = rb"[\w.]*\b[A-Z]\w*\s*\("
_EMPTY = rb"=[ \t]*(?:\[\s*\]|list\(\))"
_DISPLAY = rb"[\[{](?:[\s\[({]|#[^\n]*\n)*(?:(?:\"[^\"\n]*\"|'[^'\n]*'|[\w.]+)\s*:\s*)?" + _NEW
_APPEND = rb"\.append\(\s*(?:" + _NEW + rb"|\w+\s*\))"
_ATTRIBUTE = rb"self\.(\w+)[ \t]*(?::[^=\n]*)?"
_LINES = rb"(?:[^\n]*\n)+?[^\n]*?"
_LINES_OF_FUNCTION = rb"[^\n]*\n(?:(?![ \t]*def\b)[^\n]*\n)*?"

_DISPLAYED = pattern(rb"=[ \t]*" + _DISPLAY) & pattern(_ATTRIBUTE + rb"=[ \t]*" + _DISPLAY)
_PUT = pattern(rb"self\.\w+\[[^\n]*\][ \t]*=[ \t]*" + _NEW) & pattern(
    rb"self\.\w+[ \t]*(?::[^=\n]*)?=[ \t]*(?:\{[ \t]*\}|dict\(\)|OrderedDict\(\)|collections\.)"
)
_APPENDED = pattern(_APPEND)
_APPENDED_TO_ATTRIBUTE = pattern(rb"self\.\w+" + _APPEND) & pattern(
    _ATTRIBUTE + _EMPTY + _LINES + rb"self\.\1" + _APPEND
)
_APPENDED_TO_VARIABLE = pattern(rb"\.append\(\s*" + _NEW) & pattern(
    _EMPTY
    + _LINES_OF_FUNCTION
    + rb"[^\n]*?\b(\w+)\.append\(\s*"
    + _NEW
    + _LINES_OF_FUNCTION
    + rb"[ \t]+self\.\w+[ \t]*=[ \t]*\1[ \t]*(?:#|$)"
)


class ModulesInPlainList(Rule):
    """Submodules are kept in a Python list or dict, where torch does not see them.

    ## What it does
    Reports attributes of an `nn.Module` that are a plain list or dict of newly made modules, unless
    the class registers them in another way.

    ## Why is this bad?
    Only attributes that are modules themselves are registered. The layers in the list are missing
    from `parameters()`, so they are never trained; `.to(device)` does not move them, `state_dict()`
    does not save them, and `eval()` does not reach them.

    ## Example
    ```python
    from torch import nn

    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = [nn.Linear(8, 8) for _ in range(depth)]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    ```

    ## Use instead
    ```python
    from torch import nn

    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    ```

    ## Fix safety
    The fix is safe: it wraps the list in `nn.ModuleList` (a dict in `nn.ModuleDict`), where the
    code does with it only what these allow.

    ## When not to use it
    Where a module is hidden on purpose, such as a frozen teacher that must stay out of the
    checkpoint. The rule is silent on lists of one element, on modules in eval mode, and where a
    comment says so.

    ## References
    - [torch.nn.ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html)
    """

    code = "TLN001"
    severity = Severity.ERROR
    scout = _DISPLAYED | _PUT | _APPENDED & (_APPENDED_TO_ATTRIBUTE | _APPENDED_TO_VARIABLE)
    help = "keep them in `nn.ModuleList` or `nn.ModuleDict`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for definition in file.classes.values():
            if definition.is_module:
                for collection in unregistered_modules(definition):
                    if not _is_hidden_on_purpose(file, collection):
                        yield self._report(file, collection)

    def _report(self, file: FileModel, collection: ModuleCollection) -> Report:
        is_dict = isinstance(collection.value, (ast.Dict, ast.DictComp))
        is_dict = is_dict or last_name(collection.value) in ("dict", "OrderedDict")
        kind = "dict" if is_dict else "list"
        return self.report(
            collection.value,
            f"the modules in `self.{collection.name}` are in a plain {kind}: "
            "they are not registered, so never trained, moved or saved",
            repair=_repair(file, collection),
        )


def _is_hidden_on_purpose(file: FileModel, collection: ModuleCollection) -> bool:
    """Whether the name, or a comment beside or above it, says that this is meant."""
    statement = file.index.statement(collection.value)
    lines = file.source.lines[max(0, statement.lineno - 1 - _LINES_ABOVE) : statement.lineno]
    comments = [line.partition("#")[2] for line in lines]
    return any(_HIDDEN_ON_PURPOSE.search(text) for text in [collection.name, *comments])


def _repair(file: FileModel, collection: ModuleCollection) -> Repair | None:
    container = collection.container
    if container is None:
        return None
    written = spelled(file, f"torch.nn.{container}")

    def apply(editor: Editor) -> None:
        if written is None:
            editor.ensure_import("from torch import nn")
        editor.wrap(collection.value, written or f"nn.{container}")

    return Repair(f"Keep them in `nn.{container}`", Applicability.SAFE, apply)
