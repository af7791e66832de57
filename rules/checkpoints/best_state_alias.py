from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.kept_states import STATE_DICT_CALL, KeptState, kept_states, restores_itself
from trainlint.analysis.receivers import made_role, receiver_role
from trainlint.analysis.roles import Role
from trainlint.analysis.swaps import swaps_weights_between
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, identifier_like, in_block, part_in_any_case, statement_like

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_BEST = re.compile(r"best|(^|_)(opt(imal)?|top)_(model|state|weights|wts|params)", re.IGNORECASE)
# The scout's view of ``best_model = model``: a name of a best one, and nothing but another name.
_NAME_OF_BEST = rb"(?i:best|(?:opt(?:imal)?|top)_(?:model|state|weights|wts|params))"
_ALIAS_OF_BEST = (
    rb"[\w.\[\]]*" + _NAME_OF_BEST + rb"[\w.]*\s*=(?!=)"
    rb"[ \t]*(?:[(\\]|(?!None\b|True\b|False\b)[A-Za-z_][^\n]*?(?<=\w)[ \t]*(?:[;#\r\n]|\Z))"
)
_LEAVES = (ast.Break, ast.Return, ast.Raise)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class BestStateAlias(Rule):
    """The best weights are kept without a copy, so they go on changing.

    ## What it does
    Reports `best = model.state_dict()` (also with `.copy()`, `dict(...)`, or inside a dictionary)
    and `best_model = model` that keep the best epoch for later, and weights kept this way that are
    loaded back into the model they came from.

    ## Why is this bad?
    `state_dict()` returns references to the live tensors, and copying the dictionary does not copy
    them. The next optimizer step changes the "best" weights too: what is restored or saved at the
    end is always the last epoch.

    ## Example
    ```python
    def fit(model, epochs, train, validate):
        best_accuracy, best_state = 0.0, None
        for _ in range(epochs):
            train(model)
            accuracy = validate(model)
            if accuracy > best_accuracy:
                best_accuracy = accuracy
                best_state = model.state_dict()
        model.load_state_dict(best_state)
    ```

    ## Use instead
    ```python
    import copy

    def fit(model, epochs, train, validate):
        best_accuracy, best_state = 0.0, None
        for _ in range(epochs):
            train(model)
            accuracy = validate(model)
            if accuracy > best_accuracy:
                best_accuracy = accuracy
                best_state = copy.deepcopy(model.state_dict())
        model.load_state_dict(best_state)
    ```

    ## Fix safety
    The fix is safe: it wraps the state, or the model, in `copy.deepcopy(...)`.

    ## References
    - [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
    """

    code = "TLC001"
    severity = Severity.ERROR
    scout = (
        STATE_DICT_CALL
        & (identifier("load_state_dict") | in_block(rb"if\b", rb"\.\s*state_dict\s*\("))
    ) | (
        identifier("torch")
        & part_in_any_case("best", "opt_", "optimal_", "top_")
        & identifier_like(_NAME_OF_BEST)
        & statement_like(_ALIAS_OF_BEST)
    )
    help = "keep `copy.deepcopy(model.state_dict())`, or write the weights to disk at once"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for kept in kept_states(file):
            if _keeps_best(file, kept):
                yield self._report(kept.call, f"`{ast.unparse(kept.target)}` shares its tensors")
            elif (calls := restores_itself(file, kept)) and not swaps_weights_between(
                file, kept, calls
            ):
                line = min(call.lineno for call in calls)
                yield self._report(
                    kept.call, f"loading this back (line {line}) changes nothing: it shares tensors"
                )
        for statement in file.nodes(ast.Assign):
            if _names_model_best(file, statement):
                yield self._report(
                    statement.value, f"`{ast.unparse(statement.targets[0])}` is the same object"
                )

    def _report(self, value: ast.expr, what: str) -> Report:
        def deepcopy(editor: Editor) -> None:
            editor.wrap(value, "copy.deepcopy")
            editor.ensure_import("import copy")

        repair = Repair("keep a deep copy", Applicability.SAFE, deepcopy)
        message = f"{what} with the model, which training goes on changing"
        return self.report(value, message, repair=repair)


def _keeps_best(file: FileModel, kept: KeptState) -> bool:
    """Kept where a metric improved, read elsewhere, and the model trains on."""
    choice = _improvement(file, kept.statement, kept.target)
    if choice is None:
        return False
    is_named = bool(_BEST.search(ast.unparse(kept.target)))
    loop = _loop_around(file, choice)
    if loop is None:
        is_attribute = not isinstance(_root(kept.target), ast.Name)
        return is_named and is_attribute and _is_read_outside(kept, choice)
    if _is_made_in(file, kept.model, loop, choice):
        return False
    if is_named:
        return _is_read_outside(kept, choice)
    return _updates_its_test(choice) and _is_read_outside(kept, loop)


def _names_model_best(file: FileModel, statement: ast.Assign) -> bool:
    """``best_model = model`` in a training loop."""
    target, value = statement.targets[0], statement.value
    is_alias = isinstance(value, (ast.Name, ast.Attribute)) and len(statement.targets) == 1
    if not is_alias or not isinstance(target, (ast.Name, ast.Attribute)):
        return False
    if not _BEST.search(ast.unparse(target)) or not _is_trained_module(file, value):
        return False
    choice = _improvement(file, statement, target)
    loop = _loop_around(file, choice) if choice is not None else None
    if choice is None or loop is None or _is_made_in(file, value, loop, choice):
        return False
    reads: list[ast.Name | ast.Attribute] = [*file.nodes(ast.Name), *file.nodes(ast.Attribute)]
    return _updates_its_test(choice) and any(
        ast.unparse(node) == ast.unparse(target) and node not in set(ast.walk(choice))
        for node in reads
        if isinstance(node.ctx, ast.Load)
    )


def _is_trained_module(file: FileModel, value: ast.expr) -> bool:
    role, _ = receiver_role(file, value)
    if role is not Role.MODULE or not re.search(r"\btorch\b", file.source.text):
        return False
    return made_role(file, value) in (None, Role.MODULE)


def _improvement(file: FileModel, statement: ast.stmt, target: ast.expr) -> ast.If | None:
    """The ``if`` that decides to keep; not one of which the other branch keeps as well."""
    node: ast.AST = statement
    while (parent := file.index.parents.get(node)) is not None:
        if isinstance(parent, (*_LOOPS, *_FUNCTIONS)):
            return None
        if isinstance(parent, ast.If) and not _keeps_anyway(parent, target):
            return None if isinstance(parent.body[-1], _LEAVES) else parent
        node = parent
    return None


def _keeps_anyway(choice: ast.If, target: ast.expr) -> bool:
    text = ast.unparse(target)
    return bool(choice.orelse) and all(
        any(
            isinstance(node, ast.Assign) and text in map(ast.unparse, node.targets)
            for statement in branch
            for node in ast.walk(statement)
        )
        for branch in (choice.body, choice.orelse)
    )


def _updates_its_test(choice: ast.If) -> bool:
    """``if loss < lowest: lowest = loss``."""
    read = {
        ast.unparse(node)
        for node in ast.walk(choice.test)
        if isinstance(node, (ast.Name, ast.Attribute))
    }
    return any(
        ast.unparse(target) in read
        for statement in choice.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def _loop_around(file: FileModel, node: ast.AST) -> ast.stmt | None:
    current = file.index.parents.get(node)
    while current is not None and not isinstance(current, _FUNCTIONS):
        if isinstance(current, _LOOPS):
            return current
        current = file.index.parents.get(current)
    return None


def _is_made_in(file: FileModel, model: ast.expr, loop: ast.stmt, choice: ast.If) -> bool:
    """Whether each lap has a model of its own."""
    text = ast.unparse(model)
    inside = set(ast.walk(choice))
    return any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and (text == (stored := ast.unparse(node)) or text.startswith(stored + "."))
        and node not in inside
        for node in ast.walk(loop)
    )


def _is_read_outside(kept: KeptState, place: ast.stmt) -> bool:
    inside = set(ast.walk(place))
    return any(load not in inside for load in kept.loads)


def _root(target: ast.expr) -> ast.expr:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target
