"""When Python looks for garbage while files are checked."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def starting_up() -> Iterator[None]:
    """Do not look for garbage: what is imported stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def keeping_all() -> Iterator[None]:
    """Do not look for garbage while files are checked, except where a project is forgotten.

    Syntax trees and models are millions of objects that stay alive while a file is checked, and
    Python searches all of them again and again: a sixth of the time on timm, for no less memory.
    What is loaded before is left alone afterwards too: searching it would copy it into every
    forked process.
    """
    was_enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
