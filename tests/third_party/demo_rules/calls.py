"""Each rule reports the calls of one function, and shows one trait that rules can have."""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.analysis import FileModel
from trainlint.finding import Applicability, Severity
from trainlint.rule import Repair, Report, Rule
from trainlint.scout import text

if TYPE_CHECKING:
    from trainlint.fixing import Editor


def calls_of(name: str, file: FileModel) -> Iterator[ast.Call]:
    """Every call of a plain name."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


class DemoFaulty(Rule):
    """A call of faulty()."""

    code = "DEM101"
    severity = Severity.ERROR
    scout = text("faulty")
    help = "Call right()"
    fix_safety = Applicability.SAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in calls_of("faulty", file):

            def apply(editor: Editor, call: ast.Call = call) -> None:
                editor.rename_function(call, "right")

            repair = Repair("call right()", Applicability.SAFE, apply)
            yield self.report(call, "faulty() is wrong", repair=repair)


class DemoDoubtful(Rule):
    """A call of doubtful(); with an argument it is but a hint."""

    code = "DEM102"
    severity = Severity.WARNING
    scout = text("doubtful")
    help = "Call better()"
    fix_safety = Applicability.UNSAFE

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in calls_of("doubtful", file):

            def apply(editor: Editor, call: ast.Call = call) -> None:
                editor.rename_function(call, "better")

            severity = Severity.INFO if call.args else Severity.WARNING
            repair = Repair("call better()", Applicability.UNSAFE, apply)
            yield self.report(call, "doubtful() is weak", severity=severity, repair=repair)


class DemoSlow(Rule):
    """A call of slow()."""

    code = "DEM201"
    severity = Severity.INFO
    scout = text("slow")
    help = "Call fast()"

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in calls_of("slow", file):
            yield self.report(call, "slow() is slow")


class DemoYoung(Rule):
    """A call of young(); not ready to run by default."""

    code = "DEM301"
    severity = Severity.ERROR
    preview = True
    scout = text("young")
    help = "Call old()"

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in calls_of("young", file):
            yield self.report(call, "young() is young")


class DemoMistake(Rule):
    """Has a mistake itself: fails on mistake() and takes the process down on crash()."""

    code = "DEM401"
    severity = Severity.ERROR
    preview = True
    scout = text("mistake", "crash")
    help = "None"

    def check(self, file: FileModel) -> Iterator[Report]:
        for _ in calls_of("crash", file):
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in calls_of("mistake", file):
            raise ValueError("not\nexpected")
        yield from ()


class DemoNeighbour(Rule):
    """A call of neighbour() while the file neighbour.py beside it mentions trouble."""

    code = "DEM501"
    severity = Severity.ERROR
    preview = True
    scout = text("neighbour")
    help = "Mend neighbour.py"

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in calls_of("neighbour", file):
            other = file.project.load(file.path.with_name("neighbour.py"))
            if other is not None and "trouble" in other.source.text:
                yield self.report(call, "the neighbour has trouble")


class DemoSearch(Rule):
    """A call of search() while any file of the project mentions treasure."""

    code = "DEM502"
    severity = Severity.ERROR
    preview = True
    scout = text("search")
    help = "Stop searching"

    def check(self, file: FileModel) -> Iterator[Report]:
        for call in calls_of("search", file):
            if any(True for _ in file.project.files_mentioning("trea" + "sure")):
                yield self.report(call, "there is treasure")
