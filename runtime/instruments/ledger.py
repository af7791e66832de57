"""The gradient ledger: when each parameter's gradient was written, cleared, used, thrown away.

A gradient buffer is told apart by ``(data_ptr, version)``. A buffer that looks the same at the
start of a backward as it did after its own last step has not been reset, and what the backward adds
to it is stale.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.tensors import plain
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.trace import Step

Key = tuple[int, int] | None
# Parameters without an optimizer are watched for hand-written updates by this many elements.
WATCHED_ELEMENTS = 64
# Asking whether a buffer is all zero waits for the device, so few are asked per event.
MOST_ZERO_QUESTIONS = 4


@dataclass
class _Entry:
    last: Key = None
    before: Key = None
    stepped: bool = False
    suspect: bool = False
    stale: bool = False
    fresh: bool = False
    hits: int = 0
    discarded: int = 0
    step_of_hit: int = -1
    weight_version: int = -1
    watched: torch.Tensor | None = None


def _key(param: torch.Tensor) -> Key:
    grad = param.grad
    if grad is None:
        return None
    local = plain(grad) if hasattr(grad, "_local_tensor") else grad
    if local.is_sparse:
        return (id(local), local._version)
    return (local.data_ptr(), local._version)


def all_zero(grad: torch.Tensor | None) -> bool:
    """Whether a gradient is absent or zero everywhere."""
    if grad is None:
        return True
    local = plain(grad)
    values = local.coalesce().values() if local.is_sparse else local
    return not bool(values.any())


class Ledger:
    """One entry a parameter, updated at each backward and each step."""

    def __init__(self, recorder: Recorder, book: ParamBook) -> None:
        self.recorder = recorder
        self.book = book
        self._entries: dict[int, _Entry] = {}

    def _entry(self, index: int) -> _Entry:
        return self._entries.setdefault(index, _Entry())

    def backward_starts(self) -> None:
        """Compare each buffer with how its last event left it."""
        questions = MOST_ZERO_QUESTIONS
        moved = False
        for index, param in self.book.live():
            entry = self._entry(index)
            key = _key(param)
            entry.before = key
            entry.suspect = False
            if key is None or key != entry.last:
                if entry.fresh and (key is None or questions > 0):
                    questions -= key is not None
                    self._note_thrown_away(entry, param)
                entry.stepped = entry.stale = False
            elif entry.stepped:
                entry.suspect = not all_zero(param.grad)
                entry.stepped = entry.suspect
            moved |= self._moved_by_hand(index, entry, param)
        if moved and not self.recorder.trace.optimizers:
            self.recorder.made_step(self.recorder.step + 1)
            self.recorder.progress(None)
            self.recorder.flush()

    def _note_thrown_away(self, entry: _Entry, param: torch.Tensor) -> None:
        unused = (
            entry.step_of_hit == len(self.recorder.trace.steps)
            and entry.weight_version == param._version
        )
        if unused and all_zero(param.grad):
            entry.discarded += 1
            entry.fresh = False

    def _moved_by_hand(self, index: int, entry: _Entry, param: torch.Tensor) -> bool:
        facts = self.book.facts[index]
        if facts.optimizers or not facts.backwards:
            return False
        now = plain(param).reshape(-1)[:WATCHED_ELEMENTS].clone()
        moved = entry.watched is not None and not torch.equal(entry.watched, now)
        entry.watched = now
        facts.moved_by_hand |= moved
        return moved

    def backward_ends(self) -> list[int]:
        """Note which buffers the backward wrote, and return their parameters."""
        written = []
        for index, param in self.book.live():
            entry = self._entry(index)
            key = _key(param)
            if key is None or key == entry.before:
                continue
            written.append(index)
            self.book.facts[index].backwards += 1
            entry.stale |= entry.suspect
            entry.last = key
            entry.fresh = True
            entry.hits += 1
            entry.step_of_hit = len(self.recorder.trace.steps)
            entry.weight_version = param._version
        return written

    def before_step(self, step: Step, params: list[tuple[int, torch.Tensor]]) -> None:
        """Whether the gradients that a backward left are still there when the step comes."""
        had = [(i, p) for i, p in params if self._entry(i).fresh]
        gone = [(i, p) for i, p in had if self._is_gone(i, p)]
        step.cleared = bool(had) and len(gone) == len(had)
        step.backwards = max((self._entry(i).hits for i, _ in params), default=0)
        step.discarded_backwards = min((self._entry(i).discarded for i, _ in had), default=0)
        if step.cleared:
            # A cleared step throws its last backward away; that is a finding of its own.
            step.discarded_backwards = 0

    def _is_gone(self, index: int, param: torch.Tensor) -> bool:
        key = _key(param)
        if key is None:
            return True
        return key != self._entry(index).last and all_zero(param.grad)

    def after_step(self, step: Step, params: list[tuple[int, torch.Tensor]]) -> None:
        """Count what the step used, and remember how it left the buffers."""
        for index, param in params:
            entry = self._entry(index)
            facts = self.book.facts[index]
            facts.steps += 1
            if param.grad is not None:
                facts.with_grad += 1
                step.with_grad += 1
                if entry.stale and not step.cleared:
                    facts.stale += 1
                    step.stale += 1
            entry.last = _key(param)
            entry.stepped = True
            entry.stale = entry.fresh = False
            entry.hits = entry.discarded = 0
