"""From reports to a fixed text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.finding import Applicability
from trainlint.fixing.errors import CannotFix
from trainlint.rule import Repair, Report

if TYPE_CHECKING:
    from trainlint.fixing.document import Document
    from trainlint.fixing.plan import Plan

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class FixResult:
    """The text after one round of repairs, and the reports whose repairs are in it."""

    text: str
    applied: list[Report]


def fix_source(text: str, reports: Sequence[Report], *, unsafe: bool) -> FixResult:
    """Apply the repairs of ``reports`` that do not touch each other, in order.

    ``text`` is the file (or the joined code cells of a notebook) that the reports' nodes come
    from. Repairs that touch what an earlier one touches are left out: check the new text again
    and call again, until ``applied`` is empty. Unsafe repairs are left out unless ``unsafe``.
    The new text always parses; a repair that would break it is dropped. Raises nothing for what
    cannot be fixed.
    """
    wanted = [
        (report, report.repair)
        for report in reports
        if report.repair is not None
        and (unsafe or report.repair.applicability is Applicability.SAFE)
    ]
    if not wanted:
        return FixResult(text, [])

    from trainlint.fixing.parsing import with_room_to_recurse

    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    try:
        result = with_room_to_recurse(lambda: _fix(text[len(mark) :], wanted))
    except CannotFix:
        return FixResult(text, [])
    return FixResult(mark + result.text, result.applied)


def _fix(text: str, wanted: Sequence[tuple[Report, Repair]]) -> FixResult:
    from trainlint.fixing.document import Document

    document = Document(text)
    described = [
        (report, plan)
        for report, repair in wanted
        if (plan := _described(document, repair)) is not None
    ]
    together: list[tuple[Report, Plan]] = []
    for report, plan in described:
        if not plan.conflicts_with(other for _, other in together):
            together.append((report, plan))
    fixed = _carried_out(document, [plan for _, plan in together])
    if fixed is None:
        return _one_by_one(document, described)
    return FixResult(fixed, [report for report, _ in together] if fixed != text else [])


def _described(document: Document, repair: Repair) -> Plan | None:
    from trainlint.fixing.editor import Editor
    from trainlint.fixing.plan import Plan

    plan = Plan()
    try:
        repair.apply(Editor(document, plan))
    except CannotFix:
        return None
    return plan if plan.changes else None


def _one_by_one(document: Document, described: Sequence[tuple[Report, Plan]]) -> FixResult:
    """Together the repairs break the text: keep each that does no harm to those before it."""
    text = document.text
    kept: list[tuple[Report, Plan]] = []
    for report, plan in described:
        plans = [kept_plan for _, kept_plan in kept]
        if plan.conflicts_with(plans):
            continue
        fixed = _carried_out(document, [*plans, plan])
        if fixed is not None:
            text = fixed
            kept.append((report, plan))
    return FixResult(text, [report for report, _ in kept])


def _carried_out(document: Document, plans: Sequence[Plan]) -> str | None:
    """The new text; none if it cannot be made, or is not as valid as the old."""
    from libcst import CSTValidationError

    from trainlint.fixing.parsing import compiles, parse_ast, parse_concrete
    from trainlint.fixing.rebuild import carry_out

    try:
        fixed = carry_out(document, plans)
        parse_ast(fixed)
        parse_concrete(fixed)
    except (CannotFix, CSTValidationError):
        return None
    return fixed if compiles(fixed) or not compiles(document.text) else None
