"""What older versions of torch do otherwise, acted out in this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.nn.modules import module as torch_modules

from trainlint.runtime.instruments import modules, optimizers
from trainlint.runtime.launch.spec import ChildSpec
from trainlint.runtime.recorder import Recorder
from trainlint.runtime.session import Session

pytestmark = pytest.mark.slow


def steps_seen(folder: Path, model: Any, sgd: Any, call: Any) -> Recorder:
    """Three steps under a session."""
    recorder = Recorder(ChildSpec("here", False, [], str(folder), sandbox=False))
    session = Session(recorder)
    session.open()
    try:
        optimizer = sgd(model.parameters(), lr=0.1)
        for _ in range(3):
            call(model).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    finally:
        session.close()
    assert recorder.trace.instrument_errors == []
    return recorder


def test_hooks_of_modules_that_are_given_no_keywords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def register(hook: Any, *, always_call: bool = False) -> Any:
        return torch_modules.register_module_forward_hook(hook, always_call=always_call)

    monkeypatch.setattr(modules, "register_module_forward_hook", register)
    seen: list[Any] = []
    monkeypatch.setattr(
        modules.Modules, "_root_ends", lambda self, *_: seen.append(self.call_inputs[1])
    )
    call = torch.nn.Module.__call__
    x = torch.ones(2, 4)
    steps_seen(tmp_path, torch.nn.Linear(4, 3), torch.optim.SGD, lambda model: model(input=x))
    assert [list(keywords) for keywords in seen] == [["input"]] * 3
    assert torch.nn.Module.__call__ is call


def test_compiling_that_takes_the_hooks_of_steps_away(tmp_path: Path) -> None:
    class Own(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for param in self.param_groups[0]["params"]:
                param.sub_(0.1 * param.grad)

    def unhook() -> None:
        Own.step.hooked = True  # type: ignore[attr-defined]  # nobody hooks it any more

    torch.optim.Own = Own  # type: ignore[attr-defined]
    try:
        optimizers._make_patch(unhook)()
        x = torch.ones(2, 4)
        recorder = steps_seen(tmp_path, torch.nn.Linear(4, 3), Own, lambda model: model(x))
    finally:
        del torch.optim.Own  # type: ignore[attr-defined]
    assert len(recorder.trace.steps) == 3
