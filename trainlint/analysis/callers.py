"""Who calls a function that nothing in its own file calls."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial

from trainlint.analysis.definitions import ClassDefinition, FunctionDefinition
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.interpreter.runs import Run
from trainlint.search import holds_identifier

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
        if not _may_refer_to(other, function):
            continue
        reaching = [item for item in other.runs if function in item.entered]
        if not reaching and _calls_by_name(other, function.name):
            return None
        found.extend(reaching)
        if len(found) > _MAX_CALLING_FILES:
            return None
    return found


def known_callers(run: Run) -> list[Run]:
    """Those runs of other files that certainly reach the root of a run; there may be more."""
    function = run.root
    if function is None:
        return []
    found: list[Run] = []
    for other in _files_that_name(function):
        found.extend(item for item in other.runs if function in item.entered)
    return found


def _files_that_name(function: FunctionDefinition) -> Iterator[FileModel]:
    """A few files that mention the function, or for a method its class and itself."""
    home = function.file
    words = [function.name]
    if function.owner is not None:
        words = [function.owner.name]
        words += [function.name] if not function.name.startswith("__") else []
    found = home.project.files_mentioning(words[0], *words[1:])
    return itertools.islice((other for other in found if other is not home), _MAX_CALLING_FILES)


def _is_referred_to(function: FunctionDefinition) -> bool:
    """Whether the function's own file uses its name outside the definition."""
    name, file = function.name, function.file
    named: list[ast.Name] | list[ast.Attribute]
    if function.owner is None:
        named = [node for node in file.nodes(ast.Name) if node.id == name]
    else:
        named = [node for node in file.nodes(ast.Attribute) if node.attr == name]
    return any(not file.index.holds(function.node, node) for node in named)


def _files_that_may_call(function: FunctionDefinition) -> Iterator[FileModel]:
    """Files that mention the function and the module, package, or class, that holds it."""
    home = function.file
    words = _places_to_import_from(function)
    where: Callable[[bytes], bool] | None = None
    if function.owner is not None:
        words.append(function.owner.name)
        words.extend(home.project.heirs(function.owner.name))
        where = partial(_may_call, function.owner.name.encode(), function.name.encode())
    found = home.project.files_mentioning(function.name, *words, where=where)
    return itertools.islice((other for other in found if other is not home), _MAX_CALLING_FILES)


def _may_call(owner: bytes, method: bytes, data: bytes) -> bool:
    """Whether a file speaks of the class, or calls the method of something other than ``self``.

    A class that calls its own method of that name, and does not speak of this one, means another.
    """
    return holds_identifier(data, owner) or any(
        not data.endswith((b"self", b"super()"), 0, called.start())
        for called in re.finditer(rb"\." + re.escape(method) + rb"\b", data)
    )


def _places_to_import_from(function: FunctionDefinition) -> list[str]:
    """The name of its module, and of the package if that hands the function on."""
    path = function.file.path
    if path.stem == "__init__":
        return [path.parent.name]
    package = function.file.project.load(path.with_name("__init__.py"))
    exported = function.owner.name if function.owner is not None else function.name
    names = package.index.names_bound_in(package.tree) if package is not None else {}
    hands_on = exported in names or (package is not None and bool(package.names.star_modules()))
    return [path.stem, path.parent.name] if hands_on else [path.stem]


def _may_refer_to(file: FileModel, function: FunctionDefinition) -> bool:
    """Whether a name in the file is the function, or a method that it could be.

    Asked first because it is cheap: running another file is not.
    """
    name = function.name
    attributes = [node for node in file.nodes(ast.Attribute) if node.attr == name]
    if function.owner is not None:
        return bool(attributes) and not _means_another(file, function.owner)
    names = [node for node in file.nodes(ast.Name) if node.id == name]
    return any(file.resolve(node) in (function, None) for node in [*names, *attributes])


def _means_another(file: FileModel, owner: ClassDefinition) -> bool:
    """Whether a class of the owner's name in the file is another one, as in a copied project."""
    meant = {file.resolve_class(node) for node in file.nodes(ast.Name) if node.id == owner.name}
    if owner.name in file.classes:
        meant.add(file.classes[owner.name])
    return bool(meant) and all(found and owner not in found.ancestors() for found in meant)


def _calls_by_name(file: FileModel, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b\s*\(", file.source.text) is not None
