from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.frameworks import imports_framework
from trainlint.analysis.receivers import last_name
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier

if TYPE_CHECKING:
    from trainlint.fixing import Editor

_TYPOS = frozenset(
    {
        "require_grad", "required_grad", "requires_grads", "require_grads", "required_grads",
        "requires_gradient", "require_gradient", "requires_gradients", "requries_grad",
        "requieres_grad", "reqiures_grad", "requires_gard", "requires_garad", "requre_grad",
        "requires_grade", "requiers_grad", "requird_grad", "requiregrad", "requiresgrad",
    }
)  # fmt: skip
_SETTINGS = re.compile(
    r"(^|_)(args?|opts?|options?|conf|config|cfg|settings?|flags?|hparams?|spec|meta|kwargs)(_|$)",
    re.IGNORECASE,
)
_FACTORIES = re.compile(r"torch\.[a-z]\w*$|torch\.nn\.Parameter$|torch\.autograd\.Variable$")


class RequiresGradTypo(Rule):
    """`requires_grad` is misspelled, so nothing is frozen.

    ## What it does
    Reports assignments to `require_grad`, `required_grad`, `requires_grads` and the like on
    parameters, tensors and modules, and the same as an argument of torch's factories.

    ## Why is this bad?
    Python lets you set any attribute on a tensor or a module. The misspelled one is never read: the
    layers that should be frozen go on training, without a message.

    ## Example
    ```python
    import torchvision

    model = torchvision.models.resnet18()
    for parameter in model.parameters():
        parameter.require_grad = False
    ```

    ## Use instead
    ```python
    import torchvision

    model = torchvision.models.resnet18()
    for parameter in model.parameters():
        parameter.requires_grad = False
    ```

    ## Fix safety
    The fix is safe. Where it may be a whole module, it calls `requires_grad_()`, because an
    attribute `requires_grad` of a module does nothing.

    ## References
    - [torch.Tensor.requires_grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html)
    - [torch.nn.Module.requires_grad_](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_)
    """

    code = "TLN004"
    severity = Severity.ERROR
    scout = identifier(*_TYPOS)
    help = "write `requires_grad`"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for statement in file.nodes(ast.Assign):
            for target in statement.targets:
                if (
                    isinstance(target, ast.Attribute)
                    and target.attr in _TYPOS
                    and _is_differentiable(file, target)
                ):
                    yield self._on_attribute(file, statement, target)
        for call in file.nodes(ast.Call):
            for argument in call.keywords:
                if argument.arg in _TYPOS and _FACTORIES.match(file.qualified(call.func) or ""):
                    yield self._on_argument(call, argument)

    def _on_attribute(
        self, file: FileModel, statement: ast.Assign, target: ast.Attribute
    ) -> Report:
        may_be_module = not _is_parameter(file, target.value)

        def apply(editor: Editor) -> None:
            if may_be_module and len(statement.targets) == 1:
                value = editor.source(statement.value)
                editor.replace_statement(
                    statement, f"{editor.source(target.value)}.requires_grad_({value})"
                )
            else:
                editor.rename_attribute(target, "requires_grad")

        return self.report(
            target,
            f"`{target.attr}` is a new attribute that nothing reads: this changes no gradient",
            repair=Repair("Write `requires_grad`", Applicability.SAFE, apply),
        )

    def _on_argument(self, call: ast.Call, argument: ast.keyword) -> Report:
        typo = argument.arg or ""
        return self.report(
            argument,
            f"torch has no argument `{typo}`: this call raises a TypeError",
            repair=Repair(
                "Write `requires_grad`",
                Applicability.SAFE,
                lambda editor: editor.rename_argument(call, typo, "requires_grad"),
            ),
        )


def _is_differentiable(file: FileModel, target: ast.Attribute) -> bool:
    """Whether the attribute is meant for a parameter, tensor or module.

    Certain in a loop over parameters. Else the file must work with torch, the receiver must not be
    an object of settings or ``self``, and the name must not be one that the code really uses.
    """
    receiver = target.value
    if _comes_from_parameters(file, receiver):
        return True
    return (
        imports_framework(file, "torch", "torchvision", "transformers", "timm")
        and not (isinstance(receiver, ast.Name) and receiver.id in ("self", "cls"))
        and not _SETTINGS.search(last_name(receiver))
        and not _is_own_name(file, target.attr)
    )


def _is_parameter(file: FileModel, receiver: ast.expr) -> bool:
    """Whether the receiver is surely no module, which has no attribute ``requires_grad``."""
    named_so = last_name(receiver) in ("p", "param", "parameter", "weight", "bias")
    return named_so or _comes_from_parameters(file, receiver)


def _comes_from_parameters(file: FileModel, receiver: ast.expr) -> bool:
    """``for name, receiver in model.named_parameters():``."""
    if not isinstance(receiver, ast.Name):
        return False
    for bound in file.index.bindings(receiver.id, file.index.scope(receiver)):
        loop: ast.AST | None = file.index.parents.get(bound)
        while isinstance(loop, (ast.Tuple, ast.Name, ast.Starred)):
            loop = file.index.parents.get(loop)
        if isinstance(loop, (ast.For, ast.comprehension)) and "parameters()" in ast.unparse(
            loop.iter
        ):
            return True
    return False


def _is_own_name(file: FileModel, name: str) -> bool:
    """Whether the file reads the attribute, or has a parameter or field of that name."""
    reads = any(
        node.attr == name and isinstance(node.ctx, ast.Load) for node in file.nodes(ast.Attribute)
    )
    return (
        reads
        or any(node.arg == name for node in file.nodes(ast.arg))
        or any(
            isinstance(node.target, ast.Name) and node.target.id == name
            for node in file.nodes(ast.AnnAssign)
        )
    )
