from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.evaluations import contexts
from trainlint.analysis.index import Function
from trainlint.analysis.places import place
from trainlint.analysis.protocols.global_switch import switched_off_and_trained
from trainlint.analysis.receivers import last_name
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import identifier

_SWITCHES = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
_SCOPES = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})
# Programs that only infer may say so once and for all.
_INFERENCE = re.compile(
    r"infer|demo|export|predict|generat|sampl|test|eval|visual|convert|benchmark|extract|deploy|serve|"
    r"translate|detect|chat|app$|run_|example|plot|embed",
    re.IGNORECASE,
)


class GradDisabledGlobally(Rule):
    """Gradients are switched off for the whole process.

    ## What it does
    Reports `torch.set_grad_enabled(False)` as a statement, and `no_grad().__enter__()`, at the top
    of a module that is there to be imported, or in a constructor or helper of it, where the same
    file never switches gradients on again and the project trains something; and anywhere else if a
    backward pass follows before gradients are switched on again.

    ## Why is this bad?
    The switch is global. Whoever imports the module trains without gradients from then on: backward
    fails far away, or nothing learns.

    ## Example
    ```python
    import torch

    torch.set_grad_enabled(False)

    def features(network, image):
        return network(image)

    def train(network, loader, optimizer):
        for x in loader:
            network(x).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    import torch

    @torch.no_grad()
    def features(network, image):
        return network(image)

    def train(network, loader, optimizer):
        for x in loader:
            network(x).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## When not to use it
    Programs that only infer: scripts with a `__main__` block and files named so are not reported.

    ## References
    - [torch.set_grad_enabled](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.set_grad_enabled.html)
    """

    code = "TLM004"
    severity = Severity.ERROR
    preview = True
    scout = identifier("set_grad_enabled", "__enter__")
    help = "use `with torch.no_grad():` or `@torch.no_grad()` around what needs it"

    def check(self, file: FileModel) -> Iterator[Report]:
        found = [node for node in file.nodes(ast.Expr) if _switches_off(file, node.value)]
        if not found or file.is_unit_test:
            return
        for run, _ in contexts(file):
            for switch, backward in switched_off_and_trained(run):
                if switch.file is file:
                    where = place(backward, file)
                    yield self.report(
                        switch.node,
                        f"gradients are still off at the backward pass that follows ({where})",
                    )
        if not _is_library(file) or _switches_on(file) or not _is_trained_somewhere(file):
            return
        for statement in found:
            if _reaches_others(file, file.index.enclosing_function(statement)):
                yield self.report(statement.value, "switches gradients off for the whole process")


def _switches_off(file: FileModel, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if file.qualified(node.func) in _SWITCHES:
        return len(node.args) == 1 and _is_false(node.args[0])
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "__enter__"):
        return False
    context = node.func.value
    return isinstance(context, ast.Call) and file.qualified(context.func) in _SCOPES


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_library(file: FileModel) -> bool:
    """Whether the file defines something to train with, or to import, and is no program itself."""
    text = file.source.text
    defines = bool(file.functions or file.classes)
    is_program = "__main__" in text or file.path.suffix == ".ipynb" or _runs_by_itself(file)
    if not defines or is_program or _INFERENCE.search(file.path.stem):
        return False
    if "backward(" in text:
        return True
    name = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
    imports = re.compile(rf"^\s*(from|import)\b[^\n]*\b{re.escape(name)}\b", re.MULTILINE)
    return any(
        imports.search(other.source.text)
        for other in file.project.files_mentioning(name, "import")
        if other is not file
    )


def _runs_by_itself(file: FileModel) -> bool:
    """Whether the top level loops, or reads the arguments of the command line: a program."""
    calls = [call for call in file.nodes(ast.Call) if last_name(call) == "parse_args"]
    work: list[ast.AST] = [*file.nodes(ast.For), *file.nodes(ast.While), *calls]
    return any(file.index.enclosing_function(node) is None for node in work)


def _switches_on(file: FileModel) -> bool:
    return any(
        isinstance(node, ast.Call)
        and file.qualified(node.func) in _SWITCHES
        and not any(_is_false(argument) for argument in node.args)
        for node in file.nodes(ast.Call)
    ) or "enable_grad" in file.source.text.replace("set_grad_enabled", "")


def _is_trained_somewhere(file: FileModel) -> bool:
    if "backward(" in file.source.text:
        return True
    return any(file.project.files_mentioning("backward("))


def _reaches_others(file: FileModel, function: Function | None) -> bool:
    """At import, in a constructor, or in a helper that does not say it is an evaluation."""
    return function is None or not _INFERENCE.search(function.name)
