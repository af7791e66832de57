"""Who calls a function that nothing in its own file calls."""

from __future__ import annotations

import ast
import re

from trainlint.analysis.definitions import FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run

_MAX_CALLING_FILES = 12


def callers(run: Run) -> list[Run] | None:
    """The runs of other files that reach the root of a run.

    Empty where nobody in sight calls it, or it is the module itself; None where somebody seems to
    call it in a way that the model cannot follow.
    """
    function = run.root
    if function is None:
        return []
    if _is_referred_to(function):
        return None
    found: list[Run] = []
    for other in _files_that_may_call(function):
        reaching = [item for item in other.runs if function in item.entered]
        if not reaching and _calls_by_name(other, function.name):
            return None
        found.extend(reaching)
        if len(found) > _MAX_CALLING_FILES:
            return None
    return found


def _is_referred_to(function: FunctionDefinition) -> bool:
    """Whether the function's own file uses its name outside the definition."""
    name = function.name
    inside = set(ast.walk(function.node))
    for node in [*function.file.nodes(ast.Name), *function.file.nodes(ast.Attribute)]:
        used = node.id if isinstance(node, ast.Name) else node.attr
        if used == name and node not in inside:
            return True
    return False


def _files_that_may_call(function: FunctionDefinition) -> list[FileModel]:
    """Files that mention the function and the module, or class, that holds it."""
    home = function.file
    words = {home.path.stem if home.path.stem != "__init__" else home.path.parent.name}
    if function.owner is not None:
        words.add(function.owner.name)
    found: list[FileModel] = []
    for other in home.project.files_mentioning(function.name):
        if other is not home and any(word in other.source.text for word in words):
            found.append(other)
        if len(found) > _MAX_CALLING_FILES:
            break
    return found


def _calls_by_name(file: FileModel, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b\s*\(", file.source.text) is not None
