"""Other weights put into a model for a while: averaged ones, for validation or saving."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from trainlint.analysis.receivers import last_name

if TYPE_CHECKING:
    from trainlint.analysis.file_model import FileModel
    from trainlint.analysis.kept_states import KeptState

_AVERAGE = re.compile(
    r"(^|_)ema(_|$|\d)|^ema|ema$|EMA|Ema|moving_?average|averaged?_?model|shadow|(^|_)swa(_|$)"
)
_SWAPS = frozenset({"copy_to", "apply_shadow", "swap", "apply_to", "swap_in"})


def is_average(node: ast.expr) -> bool:
    """Whether people would name an averaged copy of a model so."""
    return any(
        _AVERAGE.search(part.id if isinstance(part, ast.Name) else part.attr)
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Attribute))
    )


def swaps_weights_between(file: FileModel, kept: KeptState, restores: list[ast.Call]) -> bool:
    """Whether other weights are put in between keeping a state and loading it back."""
    first, last = kept.statement.lineno, max(call.lineno for call in restores)
    return any(
        first < call.lineno < last
        and call not in restores
        and (
            last_name(call) in _SWAPS
            or (
                last_name(call) == "load_state_dict"
                and isinstance(call.func, ast.Attribute)
                and ast.unparse(call.func.value) == ast.unparse(kept.model)
            )
        )
        for call in file.nodes(ast.Call)
    )
