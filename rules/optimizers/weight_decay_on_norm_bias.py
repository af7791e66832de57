from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.weight_decay import DecayOfAll, decays_of_all
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, part_of_identifier, pattern

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class WeightDecayOnNormBias(Rule):
    """Weight decay also shrinks normalisation gains, biases and embeddings.

    ## What it does
    Reports an optimizer that decays all parameters of a model which is seen to hold normalisation
    layers or embeddings. Where the strength of the decay cannot be seen, it is an `info`; where the
    model cannot be seen, too, and only for AdamW. SGD on networks that only have batch
    normalisation is left alone: the classic recipe decays everything.

    ## Why is this bad?
    Decay pulls weights to 0. A gain should stay near 1, and a bias or an embedding of a rare token
    is pulled far more often than it is trained. Standard recipes decay only matrices.

    ## Example
    ```python
    import torch
    import torch.nn as nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(64)
            self.linear = nn.Linear(64, 64)

    model = Block()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn as nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(64)
            self.linear = nn.Linear(64, 64)

    model = Block()
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed}, {"params": others, "weight_decay": 0.0}], lr=3e-4, weight_decay=0.1
    )
    ```

    ## Fix safety
    The fix is unsafe: it makes two parameter groups, which changes training and the layout of saved
    optimizer states.

    ## References
    - [nanoGPT: configure_optimizers](https://github.com/karpathy/nanoGPT/blob/master/model.py)
    """

    code = "TLO001"
    severity = Severity.WARNING
    scout = (
        identifier("parameters", "named_parameters")
        & (part_of_identifier("AdamW") | identifier("weight_decay"))
        & pattern(rb"AdamW|\bweight_decay\s*=")
        & pattern(rb"parameters\s*\(")
    )
    help = "put parameters with fewer than 2 dimensions into a group with `weight_decay=0.0`"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for found in decays_of_all(file):
            is_seen = found.held is not None and found.is_known
            yield self.report(
                found.optimizer.node,
                _message(found),
                severity=Severity.WARNING if is_seen else Severity.INFO,
                repair=_repair(found),
            )


def _message(found: DecayOfAll) -> str:
    name = found.optimizer.dotted.rpartition(".")[2]
    decay = "decays by default (0.01)" if found.is_default else "decays"
    if found.held is None:
        return f"`{name}` {decay} all parameters, gains, biases and embeddings included"
    return f"`{name}` {decay} all parameters of a model that holds `{found.held}` layers"


def _repair(found: DecayOfAll) -> Repair | None:
    call = found.optimizer.node
    given = call.args[0] if call.args else None
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
        return None
    if given.func.attr != "parameters":
        return None
    return Repair(
        "Decay only parameters of 2 or more dimensions",
        Applicability.UNSAFE,
        lambda editor: _split_groups(editor, given),
    )


def _split_groups(editor: Editor, parameters: ast.expr) -> None:
    source = editor.source(parameters)
    editor.replace(
        parameters,
        f'[{{"params": [p for p in {source} if p.ndim >= 2]}}, '
        f'{{"params": [p for p in {source} if p.ndim < 2], "weight_decay": 0.0}}]',
    )
