"""The same faults under torchtest2 and torch-audit: which of them says something it did not before?

    python -m pip install torchtest2 torch-audit      # beside torch and numpy; trainlint not needed
    python tests/runtime/bench_peers.py [NAME ...]

Both need code around the script. Here is the least that serves, and it is generous: the script
runs until a few steps were made, and the tool is handed what its documentation asks for (model,
optimizer, a batch, the loss). A fault counts as found if the tool reports a warning or worse that
it does not report on the program without the fault, whatever it is called. What torch itself
refuses counts for none of them. Programs of several processes are left out, since neither tool has
a way to be used there. cockpit is not compared: it draws quantities for a reader, and judges
nothing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from mutations import MUTATIONS, PROGRAMS, Mutation
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

STEPS = 12
RUN_SECONDS = 300
_LOSSES = (
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "mse_loss", "smooth_l1_loss", "kl_div",
)  # fmt: skip


class _EnoughError(BaseException):
    """Ends the script from inside its last step."""


class Captured:
    """What a user of a peer would pass to it, taken from the running script."""

    def __init__(self, steps: int) -> None:
        self.model: nn.Module | None = None
        self.optimizer: Optimizer | None = None
        self.inputs: Any = None
        self.target: Any = None
        self.loss: Callable[[Any, Any], Any] | None = None
        self.on_optimizer: Callable[[nn.Module, Optimizer], None] | None = None
        self._left = steps

    def install(self) -> None:
        """Hook construction of optimizers, module calls, losses and steps."""
        created = Optimizer.__init__

        def init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            created(optimizer, *args, **kwargs)
            self._created(optimizer)

        Optimizer.__init__ = init  # type: ignore[method-assign]
        register_module_forward_pre_hook(self._called)
        register_optimizer_step_post_hook(self._stepped)
        for name in _LOSSES:
            setattr(functional, name, self._wrap(getattr(functional, name)))

    def _created(self, optimizer: Optimizer) -> None:
        self.optimizer = self.optimizer or optimizer
        main = vars(sys.modules["__main__"]) | _script_globals()
        modules = [m for m in main.values() if isinstance(m, nn.Module) and list(m.parameters())]
        first = optimizer.param_groups[0]["params"][0]
        modules.sort(key=lambda m: not any(p is first for p in m.parameters()))
        if self.model is None and modules:
            self.model = modules[0]
            if self.on_optimizer is not None:
                self.on_optimizer(modules[0], optimizer)

    def _called(self, module: nn.Module, inputs: Any) -> None:
        if module is self.model and self.inputs is None and torch.is_grad_enabled():
            self.inputs = tuple(i.detach().clone() if torch.is_tensor(i) else i for i in inputs)

    def _wrap(self, original: Any) -> Any:
        def loss(*args: Any, **kwargs: Any) -> Any:
            if self.loss is None and torch.is_grad_enabled():
                self.target = kwargs.get("target", args[1] if len(args) > 1 else None)
                rest, named = args[2:], {k: v for k, v in kwargs.items() if k != "target"}
                self.loss = lambda out, target: original(_first(out), target, *rest, **named)
            return original(*args, **kwargs)

        return loss

    def _stepped(self, *_: Any) -> None:
        self._left -= 1
        if self._left == 0:
            raise _EnoughError


def _script_globals() -> dict[str, Any]:
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") != "__main__":
        frame = frame.f_back
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def torchtest2(script: Path) -> list[str]:
    """Run to the second step, then check the model with one batch."""
    from torchtest2 import check_model

    seen = Captured(2)
    seen.install()
    _run(script)
    if seen.model is None or seen.inputs is None:
        return []
    report = check_model(
        seen.model, seen.inputs, seen.target, loss_fn=seen.loss, optimizer=seen.optimizer
    )
    return [result.name for result in [*report.failures, *report.warnings]]


def torch_audit(script: Path) -> list[str]:
    """Patch model and optimizer as soon as both exist, audit each step."""
    from torch_audit import autopatch

    seen = Captured(STEPS)
    auditors: list[Any] = []
    seen.on_optimizer = lambda model, optimizer: auditors.append(
        autopatch(model, optimizer=optimizer, every_n_steps=1, reporters=[])
    )
    seen.install()
    _run(script)
    findings = [f for auditor in auditors for f in auditor.finish().findings]
    return [f.rule_id for f in findings if f.severity.value != "INFO"]


PEERS = {"torchtest2": torchtest2, "torch-audit": torch_audit}


def _run(script: Path) -> None:
    try:
        runpy.run_path(str(script), run_name="__main__")
    except (_EnoughError, Exception):
        return


def _child(peer: str, script: Path, answer: Path) -> None:
    os.chdir(script.parent)
    torch.set_num_threads(1)
    log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        said = sorted(set(PEERS[peer](script)))
    except Exception as problem:
        said = [f"broke: {type(problem).__name__}"]
    answer.write_text(json.dumps(said))


def ask(peer: str, name: str, text: str) -> list[str]:
    """What a peer reports on one program, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script, answer = Path(folder) / f"{name}.py", Path(folder) / "answer.json"
        script.write_text(text)
        process = multiprocessing.get_context("fork").Process(
            target=_child, args=(peer, script, answer)
        )
        process.start()
        process.join(RUN_SECONDS)
        process.kill()
        return list(json.loads(answer.read_text())) if answer.exists() else ["broke: no answer"]


def main() -> None:
    """Ask both about every fault, and print the table by rule."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only mutations whose name contains one of these")
    names = parser.parse_args().names
    wanted = [m for m in MUTATIONS if m.ranks == 1]
    wanted = [m for m in wanted if not names or any(name in m.name for name in names)]
    usual = {
        (peer, base): ask(peer, base, (PROGRAMS / f"{base}.py").read_text())
        for base in sorted({m.base for m in wanted})
        for peer in PEERS
    }
    for (peer, base), said in usual.items():
        print(f"without a fault, {base}, {peer}: {', '.join(said) or 'nothing'}", flush=True)
    found: dict[str, dict[str, list[Mutation]]] = {peer: {} for peer in PEERS}
    for mutation in wanted:
        for peer in PEERS:
            said = ask(peer, mutation.name, mutation.source())
            new = [s for s in said if s not in usual[peer, mutation.base] and "broke" not in s]
            print(f"{mutation.name}, {peer}: {', '.join(new or said) or 'nothing'}", flush=True)
            if new:
                found[peer].setdefault(mutation.rules[0], []).append(mutation)
    _print_table(wanted, found)


def _print_table(wanted: list[Mutation], found: dict[str, dict[str, list[Mutation]]]) -> None:
    print(f"\n| fault | mutations | {' | '.join(PEERS)} |")
    print("|---|---|" + "---|" * len(PEERS))
    for rule in sorted({m.rules[0] for m in wanted}):
        counts = " | ".join(str(len(found[peer].get(rule, []))) for peer in PEERS)
        print(f"| {rule} | {sum(m.rules[0] == rule for m in wanted)} | {counts} |")
    totals = " | ".join(str(sum(len(own) for own in found[peer].values())) for peer in PEERS)
    print(f"| all | {len(wanted)} | {totals} |")


if __name__ == "__main__":
    main()
