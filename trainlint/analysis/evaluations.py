"""Evaluations: which loops are one, and where a wrong one is to blame on its caller."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trainlint.analysis.callers import callers
from trainlint.analysis.evaluation_loops import (
    KEEPS_SCORE,
    evaluation_loop,
    trains,
    with_switches,
)
from trainlint.analysis.file_model import FileModel
from trainlint.analysis.frameworks import framework_of
from trainlint.analysis.interpreter.runs import Run
from trainlint.analysis.places import place_of
from trainlint.analysis.protocols.modes import (
    ForwardPass,
    forward_passes,
    has_outer_forward,
    is_forward,
)
from trainlint.scout import (
    Scout,
    identifier,
    identifier_like,
    in_block,
    part_of_identifier,
    pattern,
)

_WORD = rb"(?i:(?<![a-z])(?:val(?!u)|tst|eval|dev(?!ice)|infer|predict|test|holdout))"
_DATA = rb"(?i:loader|batch|data|iter|samples|set\b|_dl\b)"
_FOR = rb"\n[ \t]*(?:async[ \t]+)?for\b[^\n]*\bin\b[^\n#]*?"
_DEF = rb"def[ \t]+\w*?"
EVALUATES = (
    identifier("for")
    & identifier_like(_WORD)
    & (pattern(_FOR + _WORD) | pattern(_DEF + _WORD) & pattern(_FOR + _DATA))
)
"""An evaluation shows in a loop's header, or in a function's name and a loop over data.

Where neither does, the file evaluates at most for others, and then their calls are judged.
"""
KEEPS_SCORES = part_of_identifier("correct", "acc", "loss", "argmax") & in_block(
    rb"(?:for|while)\b", KEEPS_SCORE.pattern.encode()
)
"""A loop counts what is right, or adds up losses."""
MEASURES = (
    identifier("for")
    & part_of_identifier("no_grad", "inference_mode")
    & (
        KEEPS_SCORES
        | identifier_like(_WORD) & pattern(rb"[(\[][^\n]*?\bfor\b[^\n]*?\bin[ \t]+[\w.]*?" + _WORD)
    )
)
"""A loop without gradients may keep a score of data whose name says nothing; or it may be a
comprehension.
"""
TRAINS_BY_FLAG = (
    identifier("for")
    & identifier("backward")
    & pattern(
        rb"\n[ \t]+if[ \t]+(?:not[ \t]+)?[\w.]*(?i:train|learn|update|optim|\bopt\b|eval|valid|"
        rb"test|infer|phase|mode|split|stage|backward|grad)"
    )
)
"""One function trains or evaluates, as its flag says."""
SWITCHES_TO_EVALUATION = identifier("eval", "train") & pattern(
    rb"\.eval\(|\.train\(\s*(?:mode\s*=\s*)?(?:False|0)\s*\)"
)


@dataclass(frozen=True)
class Blame:
    """A wrong evaluation, and the node to report: a call if other callers do it right.

    ``caller`` is the place of that call where it stands in another file: then the forward pass
    itself is to be reported, and the place told. ``others_are_right``: other callers evaluate too,
    and do it right; else they train.
    """

    node: ast.AST
    found: ForwardPass
    is_call: bool
    others_are_right: bool = True
    caller: str | None = None


def contexts(
    file: FileModel, matters: Callable[[Run], bool] | None = None
) -> list[tuple[Run, bool]]:
    """The runs that reach the file's code, and whether a run's start is really a start.

    Of the file's own runs only those that ``matters`` is true for: looking for callers is slow.

    A function that other files call is seen as they call it. False stands for a function that
    somebody, a framework say, calls in a way that the model cannot follow: what it starts with is
    unknown.
    """
    found: list[tuple[Run, bool]] = []
    for run in filter(matters, file.runs):
        owner = run.root.owner if run.root is not None else None
        outside = None if owner is not None and framework_of(owner) else callers(run)
        if outside is None:
            found.append((run, False))
        elif outside:
            found.extend((item, True) for item in outside)
        else:
            found.append((run, True))
    return found


def wrong_evaluations(
    file: FileModel,
    scout: Scout,
    verdict: Callable[[ForwardPass, bool], bool | None],
    *,
    by_model: bool = True,
) -> Iterator[Blame]:
    """Evaluations that ``verdict`` calls wrong: one for each loop, and ``by_model`` in it.

    ``scout`` is the rule's: what it does not suspect has no evaluation of its own, so that a wrong
    call there is told where the helper is.
    ``verdict`` is asked about every forward pass, with whether the run's start is really a start;
    None means that it is no evaluation, or that nobody can tell.
    """
    if file.is_unit_test or not scout.suspects(file.source.glance):
        return
    judged = _judged(file, verdict)
    reported: set[object] = set()
    for found in judged.wrong:
        blame = judged.blame(found)
        place_once = _place(blame, by_model=by_model) if blame is not None else None
        if blame is None or place_once in reported:
            continue
        reported.add(place_once)
        home = _file_of(blame)
        tells_itself = scout.suspects(home.source.glance) and any(
            item.run.file is home for item in judged.right.get(found.event.node, [])
        )
        if home is file:
            yield blame
        elif found.event.file is file and not tells_itself:
            place = place_of(blame.node, home, file)
            yield replace(blame, node=found.event.node, is_call=False, caller=place)


@dataclass(frozen=True)
class _Judged:
    """The wrong forward passes of a file, and by node what else happens there.

    ``right``: evaluations done right; ``training``: training; ``unsure``: the runs in which nobody
    can tell. What is wrong in a run is so whatever else that run may do.
    """

    wrong: list[ForwardPass]
    right: dict[ast.AST, list[ForwardPass]]
    training: dict[ast.AST, list[ForwardPass]]
    unsure: dict[ast.AST, set[Run]]

    def blame(self, found: ForwardPass) -> Blame | None:
        """The forward pass, or the call that makes it wrong where others call the same helper."""
        node = found.event.node
        if self.unsure.get(node, set()) - {found.run}:
            return None
        if node in self.right or node not in self.training:
            return _blame(found, self.right.get(node, []))
        blame = _blame(found, self.training[node])
        return replace(blame, others_are_right=False) if blame else Blame(node, found, False)


def _judged(file: FileModel, verdict: Callable[[ForwardPass, bool], bool | None]) -> _Judged:
    judged = _Judged([], {}, {}, {})
    for run, starts_here in contexts(file, has_outer_forward):
        for found in with_switches(list(forward_passes(run))):
            if any(is_forward(call) for call in found.moment.calls):
                continue
            outcome, node = verdict(found, starts_here), found.event.node
            if outcome:
                judged.wrong.append(found)
            elif outcome is False:
                judged.right.setdefault(node, []).append(found)
            elif not starts_here:
                judged.unsure.setdefault(node, set()).add(run)
            elif any(map(trains, found.moment.loops)):
                judged.training.setdefault(node, []).append(found)
    judged.wrong.sort(key=lambda found: getattr(found.event.node, "lineno", 0))
    return judged


def _place(blame: Blame, *, by_model: bool) -> tuple[object, ...]:
    """What is reported once: a call, or a loop or function, or a model in it."""
    found = blame.found
    if blame.is_call:
        return (blame.node,)
    loop = evaluation_loop(found)
    around = loop.node if loop else found.event.file.index.enclosing_function(found.event.node)
    return around, found.model.hint if by_model else None


def _blame(found: ForwardPass, right: list[ForwardPass]) -> Blame | None:
    """The forward pass, or the innermost call that only the wrong evaluation goes through."""
    if not right:
        return Blame(found.event.node, found, False)
    calls = [call.node for call in found.moment.calls]
    shared = max(_shared_end(calls, [call.node for call in item.moment.calls]) for item in right)
    if shared >= len(calls):
        return None
    return Blame(calls[len(calls) - 1 - shared], found, True)


def _shared_end(first: list[ast.AST], second: list[ast.AST]) -> int:
    count = 0
    for one, other in zip(reversed(first), reversed(second), strict=False):
        if one is not other:
            break
        count += 1
    return count


def _file_of(blame: Blame) -> FileModel:
    if not blame.is_call:
        return blame.found.event.file
    return next(call.file for call in blame.found.moment.calls if call.node is blame.node)
