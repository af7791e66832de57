"""One instrumented run: which instruments there are, and in which order they are put in place."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch

from trainlint.runtime.instruments.activations import Activations
from trainlint.runtime.instruments.backward import Backwards
from trainlint.runtime.instruments.book import ParamBook
from trainlint.runtime.instruments.checkpoints import Checkpoints
from trainlint.runtime.instruments.collectives import Collectives
from trainlint.runtime.instruments.distributed import Distributed
from trainlint.runtime.instruments.initialisation import Initialisation
from trainlint.runtime.instruments.ledger import Ledger
from trainlint.runtime.instruments.loaders import Loaders
from trainlint.runtime.instruments.losses import Losses
from trainlint.runtime.instruments.memory import Memory
from trainlint.runtime.instruments.modules import Modules
from trainlint.runtime.instruments.namespaces import Namespaces
from trainlint.runtime.instruments.optimizers import Optimizers
from trainlint.runtime.instruments.protocol import CallOrder
from trainlint.runtime.instruments.scripting import keep_scriptable
from trainlint.runtime.patches import Patches
from trainlint.runtime.phases.extra_forwards import ExtraForwards
from trainlint.runtime.phases.fixed_batch import FixedBatch
from trainlint.runtime.phases.nonfinite import Replay
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.sandbox.redirects import Redirects
from trainlint.runtime.sandbox.savers import Savers

UNCOMPILED = "torch.compile was left out, to see inside the model; --keep-compile keeps it"


class Instrument(Protocol):
    """Something that hooks into torch until its patches are undone."""

    def install(self, patches: Patches) -> None:
        """Put the hooks in place."""


class Session:
    """Instruments around one run; :meth:`close` leaves torch as it was."""

    _here: ClassVar[Session | None] = None

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.patches = Patches()
        spec = recorder.spec
        book = ParamBook(recorder)
        ledger = Ledger(recorder, book)
        optimizers = Optimizers(recorder, book, ledger)
        backwards = Backwards(recorder, ledger, optimizers)
        modules = Modules(recorder, book)
        losses = Losses(recorder, modules)
        loaders = Loaders(recorder, modules, optimizers)
        protocol = CallOrder(recorder, optimizers, backwards)
        backwards.on_backward.append(loaders.note_backward)
        self.extra = ExtraForwards(recorder, modules, losses)
        self.book = book
        self.optimizers = optimizers
        parts: list[Instrument] = [optimizers, backwards, losses, loaders, protocol]
        if not spec.keep_compile:
            parts.append(modules)
        if spec.phase == "observe":
            self.activations = Activations(recorder, book, modules, optimizers)
            parts.append(self.activations)
            parts.append(Checkpoints(recorder, modules, optimizers, protocol))
            parts.append(Distributed(recorder, book, modules, optimizers))
            parts.append(Collectives(recorder))
            parts.append(Initialisation(recorder))
            parts.append(Memory(recorder, book, modules, optimizers))
            recorder.before_stop.append(Namespaces(recorder, modules).look)
        elif spec.phase == "replay":
            Replay(recorder, book, modules, optimizers)
        else:
            parts.append(FixedBatch(recorder, modules, loaders, losses, optimizers, protocol))
        self._parts = parts
        self.redirects = Redirects(recorder) if spec.sandbox else None

    def open(self) -> None:
        """Put every instrument in place."""
        recorder = self.recorder
        recorder.trace.torch = torch.__version__
        recorder.trace.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.redirects is not None:
            Savers(self.redirects).install(self.patches)
        if not recorder.spec.keep_compile:
            self.patches.wrap(torch, "compile", self._eager)
        for part in self._parts:
            part.install(self.patches)
        keep_scriptable()
        Session._here = self

    def finish(self) -> None:
        """What can still be measured when the script ended by itself."""
        recorder = self.recorder
        recorder.busy = True
        try:
            if not recorder.stopping:
                self.extra.run()
        except Exception as problem:
            recorder.error("finish", problem)
        finally:
            recorder.busy = False
        recorder.flush(force=True)

    def _eager(self, original: Any) -> Any:
        """``torch.compile`` that runs uncompiled: hooks inside compiled code do not fire."""

        def compile_model(*args: Any, **kwargs: Any) -> Any:
            if UNCOMPILED not in self.recorder.trace.notes:
                self.recorder.trace.notes.append(UNCOMPILED)
            if hasattr(torch.compiler, "set_stance"):
                torch.compiler.set_stance("force_eager")
            else:
                torch._dynamo.config.disable = True
            return original(*args, **kwargs)

        return compile_model

    def close(self) -> None:
        """Remove every hook and patch."""
        self.patches.undo()
        Session._here = None

    @staticmethod
    def leave_inherited() -> None:
        """Close the session that a forked process has from its parent."""
        if Session._here is not None:
            Session._here.close()
