"""Which installed packages offer rules, as their files say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

ENTRY_POINT_GROUP = "trainlint.rules"


def offers() -> Iterator[str]:
    """The entry points of installed packages that offer rules.

    ``importlib.metadata`` answers the same, but importing it costs as much as a whole cached run.
    It is asked only where this finds something.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in sorted(names):
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        text = file.read()
                except OSError:
                    continue
                if f"[{ENTRY_POINT_GROUP}]".encode() in text:
                    yield name + text.decode("utf-8", "replace")
