from __future__ import annotations

from collections.abc import Iterator

from trainlint.analysis import FileModel
from trainlint.analysis.protocols.modes import EVAL, contexts, forward_passes, is_evaluation
from trainlint.finding import Severity
from trainlint.rule import Report, Rule
from trainlint.scout import word


class EvalWithoutNoGrad(Rule):
    """An evaluation builds a graph."""

    code = "TLM003"
    severity = Severity.WARNING
    scout = word("(")
    help = "wrap"

    def check(self, file: FileModel) -> Iterator[Report]:
        for run, starts_here in contexts(file):
            for found in forward_passes(run):
                if found.event.file is file and is_evaluation(found) and found.moment.gradients is True and starts_here:
                    yield self.report(found.event.node, f"`{found.model.hint}` {found.moment.mode} builds a graph")
