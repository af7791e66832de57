"""Where training goes on in another process: one that the script starts, or turns into.

A process that ``multiprocessing`` starts is run under instruments of its own and leaves a trace of
its own. A script that replaces itself by ``os.exec`` of Python and a script is followed there.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.patches import Patches
from trainlint.runtime.trace import Ending

if TYPE_CHECKING:
    from trainlint.runtime.recorder import Recorder

# Processes of these packages load data or compute for the script, and never train.
_HELPERS = ("torch.utils.data", "multiprocessing", "concurrent", "joblib", "torch._inductor")
MOST_FOLLOWED = 16
# Python's options without a value.
_FLAGS = "bBdEiIOPqsSuvx"
_START = (
    "import sys; sys.path[0] = sys.prefix; "
    "from trainlint.runtime.launch.child import main; main(sys.argv[1])"
)


@dataclass(frozen=True)
class Followed:
    """The target of a process, run under instruments."""

    target: Callable[..., Any]
    spec: ChildSpec

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the target, and raise what it raises."""
        from trainlint.runtime.launch.child import Child

        problem = Child(self.spec).run(lambda: self.target(*args, **kwargs))
        if problem is not None:
            raise problem


class Following:
    """Wraps the ways in which a script starts processes or becomes another program."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.started = 0
        self._replace = os.execve

    def install(self, patches: Patches) -> None:
        """Put the wrappers in place."""
        patches.wrap(BaseProcess, "start", self._make_start)
        patches.wrap(os, "execv", self._make_exec)
        patches.wrap(os, "execve", self._make_exec)

    def _make_start(self, original: Any) -> Any:
        def start(process: Any) -> None:
            target = getattr(process, "_target", None)
            if target is not None and self.recorder.active() and self._may_train(target):
                self.started += 1
                spec = dataclasses.replace(self.recorder.spec, process=self.started)
                process._target = Followed(target, spec)
            original(process)

        return start

    def _may_train(self, target: Any) -> bool:
        home = str(getattr(target, "__module__", ""))
        return not home.startswith(_HELPERS) and self.started < MOST_FOLLOWED

    def _make_exec(self, original: Any) -> Any:
        def execute(path: Any, args: Sequence[Any], env: Any = None) -> None:
            env = os.environ if env is None else env
            if not self.recorder.active():
                self._replace(path, list(args), env)
            words = [os.fsdecode(word) for word in args]
            flags, spec = python_call(words[1:], self.recorder.spec)
            if spec is not None and os.path.basename(os.fsdecode(path)).startswith("python"):
                call = [sys.executable, *flags, "-c", _START, str(spec.write())]
                self._replace(sys.executable, call, env)
            self._leaves(f"it became another program: {' '.join(words)}", path, args, env)

        return execute

    def _leaves(self, how: str, path: Any, args: Sequence[Any], env: Any) -> None:
        """Become a program that cannot be followed."""
        before = self.recorder.trace.ending
        self.recorder.trace.ending = Ending("exit", how)
        self.recorder.flush(force=True)
        try:
            self._replace(path, list(args), env)
        finally:  # there was no such program
            self.recorder.trace.ending = before


def python_call(words: list[str], spec: ChildSpec) -> tuple[list[str], ChildSpec | None]:
    """Python's own flags, and the spec for the script or module that it is told to run.

    No spec where there is neither: a command (``-c``), standard input, or an unknown flag.
    """
    flags: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        word = rest.pop(0)
        flags.append(word)
        if word in ("-X", "-W") and rest:
            flags.append(rest.pop(0))
        elif not word.startswith(("-X", "-W")) and (word == "-" or set(word[1:]) - set(_FLAGS)):
            return flags, None
    module = rest[:1] == ["-m"]
    rest = rest[1:] if module else rest
    if not rest:
        return flags, None
    return flags, dataclasses.replace(spec, target=rest[0], module=module, args=rest[1:])
