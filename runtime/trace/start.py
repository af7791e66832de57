"""What happened before the first step."""

from __future__ import annotations

from dataclasses import dataclass

from trainlint.runtime.trace.source import Place


@dataclass
class Overwritten:
    """Values of parameters that an initialisation replaced before training began.

    ``what`` had set them (``load_state_dict``, or an initialiser); ``place`` replaced them. Of
    loaded parameters, ``of`` is how many there were.
    """

    what: str
    place: Place | None
    shape: list[int]
    count: int
    of: int
