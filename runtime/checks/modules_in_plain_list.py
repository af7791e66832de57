"""Layers that run inside a module without being registered in it.

Kept in a Python list, dict or tuple, they are not in ``parameters()``, not moved, not saved, and
not switched by ``eval()``. A teacher that is hidden this way on purpose gets no gradients and is
left alone; layers that the script gave to the optimizer by hand are a warning.

Fix: use ``nn.ModuleList`` or ``nn.ModuleDict``.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.runtime.evidence import Evidence
from trainlint.runtime.findings import Finding, Level, NotChecked, Result

RULE = "modules-in-plain-list"


def check(evidence: Evidence) -> Iterator[Result]:
    """FAIL if the layers get gradients and no optimizer has them."""
    trace = evidence.trace
    if not trace.modules:
        yield NotChecked(RULE, "no module call was seen")
        return
    hidden = [m for m in trace.modules if not m.registered and not m.fresh and m.instances < 2]
    reached = [m for m in hidden if any(trace.params[i].backwards for i in m.parameters)]
    lost = [m for m in reached if not any(trace.params[i].optimizers for i in m.parameters)]
    bare = [m for m in hidden if not m.parameters]
    for modules, level, effect in (
        (lost, Level.FAIL, "they get gradients, and no optimizer can see them"),
        ([m for m in reached if m not in lost], Level.WARN, "state_dict() and eval() miss them"),
        (bare, Level.WARN, "train() and eval() do not reach them"),
    ):
        if modules:
            root, count = modules[0].root, len(modules)
            yield Finding(
                RULE,
                level,
                f"{count} layers of {root} are not registered"
                if count > 1
                else f"a layer of {root} is not registered",
                f"{', '.join(sorted({m.cls for m in modules}))} modules run inside {root} without "
                f"being among its modules: {effect}",
                "keep them in nn.ModuleList or nn.ModuleDict, or assign them to attributes",
                modules[0].place,
            )
