from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.constructors import holds_tensors, makes_module
from trainlint.analysis.flags import is_flag
from trainlint.analysis.receivers import assigned_values, last_name, unchained
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import pattern

_MEANS_TO_SHARE = re.compile(
    r"shar|tied|tie_|tying|recurren|recurs|universal|siamese|albert|unroll|reuse|"
    r"same (weight|layer|block)|deep_equilibrium|\bdeq\b|fixed.?point",
    re.IGNORECASE,
)
_LINES_ABOVE = 3
_LINES_IN_SIGHT = 40
_NEW = rb"\(*[\w.]*\b[A-Z]\w*\s*\("
_NAME = rb"(?!None\b)[A-Za-z_]\w*"
_AFTER_FACTOR = rb"(?:(?<=[\w)\]]\*)|(?<=[\w)\]][ \t]\*))"


class ModuleListMultiplication(Rule):
    """One module is repeated where several were meant.

    ## What it does
    Reports `[Layer(...)] * n`, also of a layer that was made before, and
    `[layer for _ in range(n)]` with one `layer` made outside, if the module has parameters.

    ## Why is this bad?
    All entries are the same object. The network has the depth, but the weights of one layer; it
    trains, with a fraction of its parameters.

    ## Example
    ```python
    from torch import nn

    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.blocks = nn.Sequential(*([nn.Linear(64, 64)] * depth))
    ```

    ## Use instead
    ```python
    from torch import nn

    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.blocks = nn.Sequential(*[nn.Linear(64, 64) for _ in range(depth)])
    ```

    ## Fix safety
    The fix is unsafe: it changes the number of weights, so existing checkpoints do not load.

    ## When not to use it
    Where weights are shared on purpose. The rule is silent where the names or a comment nearby say
    so ("shared", "tied", "recurrent").
    """

    code = "TLN002"
    severity = Severity.ERROR
    # ``Layer(...)] * n`` or ``n * [Layer(...)``; or a layer that is made, and ``[layer] * n``,
    # ``n * [layer]`` or ``[layer for``.
    scout = (
        pattern(rb"\]\s*\)*\s*\*(?!\*)") & pattern(rb"\)\s*,?\s*\]\s*\)*\s*\*(?!\*)")
        | pattern(rb"\*" + _AFTER_FACTOR + rb"\s*\(*\s*\[\s*" + _NEW)
        | (
            pattern(rb"\[(?<![\w)\]]\[)\s*" + _NAME + rb"\s*\]\s*\)*\s*\*(?!\*)")
            | pattern(rb"\*" + _AFTER_FACTOR + rb"\s*\(*\s*\[\s*" + _NAME + rb"\s*\]")
            | pattern(rb"\[\s*(\w+)\s+for\s+(?!\1\b)\w+\s+in\s+range\b")
        )
        & pattern(
            rb"\n[ \t]*(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*" + _NEW + rb"(?:[^\n]*\n){1,40}?"
            rb"[^\n]*?\[\s*\1(?:\s*\]|\s+for\b)"
        )
    )
    help = "make a new module for each entry: `[Layer(...) for _ in range(n)]`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for product in file.nodes(ast.BinOp):
            parts = _repeated_list(product)
            if parts is None or _is_once_at_most(file, parts[1]):
                continue
            modules = [item for item in parts[0].elts if _is_one_module(file, item)]
            if modules and not _is_shared_on_purpose(file, product):
                yield self._report(product, modules[0], _repair_of_product(product, *parts))
        for comprehension in file.nodes(ast.ListComp):
            if _repeats_a_name(file, comprehension) and not _is_shared_on_purpose(
                file, comprehension
            ):
                yield self._report(comprehension, comprehension.elt, None)

    def _report(self, node: ast.AST, module: ast.expr, repair: Repair | None) -> Report:
        written = ast.unparse(module)
        shown = written if len(written) <= 40 else written.partition("(")[0] + "(...)"
        return self.report(
            node,
            f"all entries are the same module `{shown}`: they share their weights",
            repair=repair,
        )


def _repeated_list(product: ast.BinOp) -> tuple[ast.List, ast.expr] | None:
    """The list and the factor of ``[...] * n`` or ``n * [...]``."""
    if not isinstance(product.op, ast.Mult):
        return None
    if isinstance(product.left, ast.List):
        return product.left, product.right
    return (product.right, product.left) if isinstance(product.right, ast.List) else None


def _is_once_at_most(file: FileModel, factor: ast.expr) -> bool:
    """``use_norm * [Norm()]`` takes the list once or not at all."""
    return is_flag(file, factor) or (isinstance(factor, ast.Constant) and factor.value in (0, 1))


def _is_one_module(file: FileModel, item: ast.expr) -> bool:
    """Whether an expression is a module with weights: newly made, or a variable that holds one."""
    made = list(assigned_values(file, item)) if isinstance(item, ast.Name) else [item]
    return (
        len(made) == 1
        and item.lineno - made[0].lineno < _LINES_IN_SIGHT
        and last_name(unchained(made[0]))[:1].isupper()
        and makes_module(file, made[0])
        and holds_tensors(file, made[0])
    )


def _repeats_a_name(file: FileModel, comprehension: ast.ListComp) -> bool:
    """``[layer for _ in range(n)]``, where nothing in the comprehension makes ``layer``."""
    element = comprehension.elt
    if not isinstance(element, ast.Name) or len(comprehension.generators) != 1:
        return False
    generator = comprehension.generators[0]
    counts = (
        isinstance(generator.iter, ast.Call)
        and file.qualified(generator.iter.func) == "builtins.range"
    )
    is_outside = isinstance(generator.target, ast.Name) and generator.target.id != ast.unparse(
        element
    )
    return counts and is_outside and _is_one_module(file, element)


def _is_shared_on_purpose(file: FileModel, node: ast.expr) -> bool:
    """Whether names around the place, or a comment beside or above it, speak of sharing."""
    statement = file.index.statement(node)
    lines = file.source.lines[max(0, statement.lineno - 1 - _LINES_ABOVE) : statement.end_lineno]
    function, owner = file.index.enclosing_function(node), file.index.enclosing_class(node)
    names = [item.name for item in (function, owner) if item is not None]
    documentation = [
        ast.get_docstring(item) or "" for item in (function, owner) if item is not None
    ]
    return _MEANS_TO_SHARE.search(" ".join([*lines, *names, *documentation])) is not None


def _repair_of_product(product: ast.BinOp, repeated: ast.List, factor: ast.expr) -> Repair | None:
    if len(repeated.elts) != 1 or not isinstance(repeated.elts[0], ast.Call):
        return None
    made = repeated.elts[0]
    return Repair(
        "Make a new module for each entry",
        Applicability.UNSAFE,
        lambda editor: editor.replace(
            product, f"[{editor.source(made)} for _ in range({editor.source(factor)})]"
        ),
    )
