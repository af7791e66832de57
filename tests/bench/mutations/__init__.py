"""Ways to break a correct training program, one at a time, each with the rule that must notice.

An operator is a function in any module of this package, entered with ``@operator``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.bench.mutations.operators import OPERATORS, Operator
from tests.bench.mutations.program import Mutation, Program

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["OPERATORS", "Mutation", "Operator", "Program"]
