from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.modes import ENTRY, TRAIN, ForwardPass, contexts, forward_passes, is_evaluation
from trainlint.analysis.structure import is_mode_sensitive
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import word


class EvalMissing(Rule):
    """A model is evaluated in train mode."""

    code = "TLM001"
    severity = Severity.ERROR
    scout = word("(")
    help = "call `model.eval()` before the loop, and `model.train()` before training goes on"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run, starts_here in contexts(file):
            for found in forward_passes(run):
                if found.event.file is not file or not is_evaluation(found):
                    continue
                wrong = found.moment.mode == TRAIN or (found.moment.mode == ENTRY and starts_here)
                if wrong and found.moment.gradients is False and is_mode_sensitive(found.model) is not False:
                    yield self.report(found.event.node, f"`{found.model.hint}` mode {found.moment.mode}")
