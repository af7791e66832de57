from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.analysis.kept_states import STATE_DICT_CALL, KeptState, kept_states, restores_itself
from trainlint.analysis.swaps import AVERAGE, swaps_in_training, swaps_weights_between
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import identifier, identifier_like

if TYPE_CHECKING:
    from trainlint.fixing import Editor


class EmaSwapNotRestored(Rule):
    """Averaged weights are put into the model that trains, and its own never come back.

    ## What it does
    Reports weights that are set aside with `state_dict()` and no copy while others are loaded, and
    averaged weights copied into the model inside its training loop where nothing restores the
    model's own.

    ## Why is this bad?
    Training goes on from the average: the optimizer's momentum belongs to other weights, and the
    average becomes an average of itself. A state that was kept without a copy changes when other
    weights are loaded, so loading it back restores nothing.

    ## Example
    ```python
    def validate_average(model, ema_state, validate):
        own = model.state_dict()
        model.load_state_dict(ema_state)
        score = validate(model)
        model.load_state_dict(own)
        return score
    ```

    ## Use instead
    ```python
    import copy

    def validate_average(model, ema_state, validate):
        own = copy.deepcopy(model.state_dict())
        model.load_state_dict(ema_state)
        score = validate(model)
        model.load_state_dict(own)
        return score
    ```

    ## Fix safety
    The fix is safe: it keeps a deep copy of the state. Where the restoring is missing altogether
    there is no fix.

    ## When not to use it
    Where training is meant to go on from the average.

    ## References
    - [torch.optim.swa_utils](https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema)
    """

    code = "TLC003"
    severity = Severity.ERROR
    scout = identifier("copy_to", "apply_shadow", "load_state_dict") & (
        identifier_like(AVERAGE.encode()) | STATE_DICT_CALL & identifier("load_state_dict")
    )
    help = "keep a copy of the model's own weights and load it back, or evaluate a second model"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for kept in kept_states(file):
            calls = restores_itself(file, kept)
            if calls and swaps_weights_between(file, kept, calls):
                yield self._alias(kept, max(call.lineno for call in calls))
        for swap in swaps_in_training(file):
            yield self.report(
                swap, "training goes on from the average: nothing restores the model's own weights"
            )

    def _alias(self, kept: KeptState, line: int) -> Report:
        def deepcopy(editor: Editor) -> None:
            editor.wrap(kept.call, "copy.deepcopy")
            editor.ensure_import("import copy")

        return self.report(
            kept.call,
            f"line {line} restores nothing: this shares its tensors with the model, and loading "
            "other weights overwrites them",
            repair=Repair("keep a deep copy", Applicability.SAFE, deepcopy),
        )
