from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.modes import contexts, trained_in_eval
from trainlint.analysis.structure import is_mode_sensitive
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import word


class TrainNotRestored(Rule):
    """Training goes on in eval mode after an evaluation."""

    code = "TLM002"
    severity = Severity.ERROR
    scout = word(".eval(") | word(".train(")
    help = "call `model.train()` before training goes on"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run, starts_here in contexts(file):
            for found in trained_in_eval(run):
                if found.switch.file is file and is_mode_sensitive(found.model) is not False:
                    yield self.report(found.switch.node, f"`{found.model.hint}` stays in eval mode; trained at line {found.backward.node.lineno}")
