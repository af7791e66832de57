"""The interface of a rule: what a contributor implements, and nothing more."""

from __future__ import annotations

import ast
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trainlint.finding import Applicability, Severity
from trainlint.scout import Scout

if TYPE_CHECKING:
    from trainlint.analysis import FileModel
    from trainlint.fixing import Editor

RepairFunction = Callable[["Editor"], None]


@dataclass(frozen=True, slots=True)
class Repair:
    """How to fix a reported place: ``apply`` receives an editor and describes the edits to it."""

    title: str
    applicability: Applicability
    apply: RepairFunction


@dataclass(frozen=True, slots=True)
class Report:
    """What a rule's check yields: a node of the checked file and what is wrong with it."""

    rule: Rule
    node: ast.AST
    message: str
    help: str
    severity: Severity
    repair: Repair | None = None


class Rule(ABC):
    """One kind of training bug.

    A subclass lives in a file of its own, ``rules/<family>/<rule_name>.py``, and is found by
    walking the package. Its class name is its identity: ``ZeroGradMissing`` is the rule
    ``zero-grad-missing``. Its docstring is its documentation; see ``CONTRIBUTING.md``.
    """

    code: ClassVar[str]
    severity: ClassVar[Severity]
    scout: ClassVar[Scout]
    help: ClassVar[str]
    preview: ClassVar[bool] = False
    fix_safety: ClassVar[Applicability | None] = None

    name: ClassVar[str]
    family: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
        cls.family = cls.__module__.rsplit(".", 2)[-2] if "." in cls.__module__ else cls.__module__

    @abstractmethod
    def check(self, file: FileModel) -> Iterator[Report]:
        """Yield a report for every place of ``file`` that has this bug."""

    def report(
        self,
        node: ast.AST,
        message: str,
        *,
        help: str | None = None,
        severity: Severity | None = None,
        repair: Repair | None = None,
    ) -> Report:
        """A report with this rule's own help and severity unless others are given."""
        return Report(
            self,
            node,
            message,
            self.help if help is None else help,
            self.severity if severity is None else severity,
            repair,
        )

    @classmethod
    def documentation(cls) -> str:
        """The cleaned docstring, in Markdown."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """The first line of the documentation."""
        return cls.documentation().partition("\n")[0]
