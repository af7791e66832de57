from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import ClassDefinition, FileModel
from trainlint.analysis.index import Function
from trainlint.analysis.knowledge.training import sounds_like_training
from trainlint.analysis.receivers import assigned_values
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, part_of_identifier, pattern

_ALWAYS_ON = ("dropout", "dropout1d", "dropout2d", "dropout3d")
_NEVER_ON = ("alpha_dropout", "feature_alpha_dropout")
_DROPOUTS = {
    f"torch.nn.functional.{name}": name in _ALWAYS_ON for name in (*_ALWAYS_ON, *_NEVER_ON)
}
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_SPEAKS_OF_MODE = re.compile(
    r"train|eval|infer|\btest|is_test|dropout_on|mc_|determin", re.IGNORECASE
)


class FunctionalDropoutNoTraining(Rule):
    """Functional dropout is not told whether the module is in train mode.

    ## What it does
    Reports `F.dropout(x)` without `training=`, and `F.scaled_dot_product_attention` with a
    `dropout_p` that does not depend on the mode, in the methods of modules.

    ## Why is this bad?
    The function knows nothing of the module: `F.dropout` has `training=True` by default, so it goes
    on dropping values after `model.eval()`. Validation is noisy and predictions change from call to
    call. `F.alpha_dropout` is the other way round: without the argument it never drops anything.

    ## Example
    ```python
    import torch.nn.functional as F
    from torch import nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(10, 2)

        def forward(self, x):
            return self.fc(F.dropout(x, 0.5))
    ```

    ## Use instead
    ```python
    import torch.nn.functional as F
    from torch import nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(10, 2)

        def forward(self, x):
            return self.fc(F.dropout(x, 0.5, training=self.training))
    ```

    ## Fix safety
    The fix is safe: it makes dropout follow `train()` and `eval()`.

    ## When not to use it
    Where dropout is meant to stay on (Monte Carlo dropout), write `training=True`: that is never
    reported.

    ## References
    - [torch.nn.functional.dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html)
    """

    code = "TLM009"
    severity = Severity.ERROR
    # ``F.dropout`` but not ``self.dropout``, an import of the function itself, or a probability of
    # attention that is a number or an attribute and says nothing of the mode.
    scout = (
        part_of_identifier("functional")
        & part_of_identifier("dropout")
        & (
            pattern(
                rb"\.dropout(?:[123]d)?\b(?<!self\.dropout)(?<!self\.dropout[123]d)"
                rb"(?!\s*\((?:[^()#\n]|\([^()\n]*\))*?training)"
            )
            | identifier("alpha_dropout")
            | pattern(rb"functional\s+import\s(?:[^=:#]|#[^\n]*)*?(?:\bdropout|\*)")
            | pattern(
                rb"dropout_p\s*=\s*(?![^,)#\n]*training)(?!0(?:\.0*)?\s*[,)])(?:[\d.(]|\w+\s*\.)"
            )
        )
    )
    help = "pass `training=self.training`, or use `nn.Dropout`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in file.nodes(ast.Call):
            called = file.qualified(call.func)
            if called in _DROPOUTS:
                probability = _argument(call, 1, "p")
                ignores_mode = _argument(call, 2, "training") is None and not _unpacks(call)
            elif called == _ATTENTION:
                probability = next(
                    (item.value for item in call.keywords if item.arg == "dropout_p"), None
                )
                ignores_mode = isinstance(probability, (ast.Attribute, ast.Constant))
            else:
                continue
            method = _method_of_module(file, call)
            if (
                ignores_mode
                and method is not None
                and not _may_be_switched_off(file, call, probability)
                and not _is_for_one_mode(file, call)
            ):
                yield self._report(call, called, method, probability)

    def _report(
        self, call: ast.Call, called: str, method: Function, probability: ast.expr | None
    ) -> Report:
        flag = f"{method.args.args[0].arg}.training"
        if called == _ATTENTION:
            assert probability is not None
            code = f"{ast.unparse(probability)} if {flag} else 0.0"
            return self.report(
                call,
                "attention goes on dropping values in eval mode: `dropout_p` does not depend on it",
                help=f"pass `dropout_p={code}`",
                repair=Repair(
                    "Drop in train mode only",
                    Applicability.SAFE,
                    lambda editor: editor.replace(probability, code),
                ),
            )
        name = called.rpartition(".")[2]
        consequence = "stays on in eval mode" if _DROPOUTS[called] else "never drops anything"
        return self.report(
            call,
            f"`{name}` without `training` {consequence}",
            repair=Repair(
                f"Pass `training={flag}`",
                Applicability.SAFE,
                lambda editor: editor.add_argument(call, f"training={flag}"),
            ),
        )


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    for item in call.keywords:
        if item.arg == keyword:
            return item.value
    return call.args[position] if position < len(call.args) else None


def _unpacks(call: ast.Call) -> bool:
    return any(isinstance(item, ast.Starred) for item in call.args) or any(
        item.arg is None for item in call.keywords
    )


def _method_of_module(file: FileModel, node: ast.AST) -> Function | None:
    """The method of an ``nn.Module`` that the node stands in."""
    function = file.index.enclosing_function(node)
    if function is None or not function.args.args:
        return None
    owner: ClassDefinition | None = file.definition(function).owner
    is_method = owner is not None and owner.is_module and not file.definition(function).is_static
    return function if is_method and not sounds_like_training(function.name) else None


def _may_be_switched_off(file: FileModel, call: ast.Call, probability: ast.expr | None) -> bool:
    """Whether the probability is zero, or may be zero in evaluation.

    So is one that the caller passes, that is computed from the mode, that is an attribute which
    other methods set, or that a property gives.
    """
    if probability is None:
        return False
    if isinstance(probability, ast.Constant):
        return not probability.value
    if _SPEAKS_OF_MODE.search(ast.unparse(probability)):
        return True
    parts = [node for node in ast.walk(probability) if isinstance(node, ast.expr)]
    for node in parts:
        if isinstance(node, ast.Name) and _is_parameter_of_call(file, node):
            return True
        if any(_SPEAKS_OF_MODE.search(ast.unparse(value)) for value in assigned_values(file, node)):
            return True
        if isinstance(node, ast.Attribute) and _is_set_by_methods(file, node):
            return True
    return False


def _is_parameter_of_call(file: FileModel, name: ast.Name) -> bool:
    """``def forward(self, x, p):``; ``self`` itself does not count."""
    function = file.index.enclosing_function(name)
    bound = file.index.bindings(name.id, file.index.scope(name))
    return function is not None and any(
        isinstance(item, ast.arg) and item is not function.args.args[0] for item in bound
    )


def _is_set_by_methods(file: FileModel, attribute: ast.Attribute) -> bool:
    owner = file.enclosing_class(attribute)
    if owner is None:
        return False
    method = owner.method(attribute.attr)
    assignments = file.attribute_assignments(owner.node).get(attribute.attr, [])
    return (method is not None and method.is_property) or any(
        setter.name != "__init__" for _, setter in assignments
    )


def _is_for_one_mode(file: FileModel, call: ast.Call) -> bool:
    """Whether a condition around the call asks for the mode."""
    node: ast.AST | None = call
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(node, (ast.If, ast.IfExp)) and _SPEAKS_OF_MODE.search(ast.unparse(node.test)):
            return True
        node = file.index.parents.get(node)
    return _returned_early(file, call)


def _returned_early(file: FileModel, call: ast.Call) -> bool:
    """``if not self.training: return x`` above the call."""
    function = file.index.enclosing_function(call)
    return function is not None and any(
        isinstance(statement, ast.If)
        and statement.lineno < call.lineno
        and _SPEAKS_OF_MODE.search(ast.unparse(statement.test))
        and isinstance(statement.body[-1], ast.Return)
        for statement in function.body
    )
