"""The exception that ends a probed run."""

from __future__ import annotations


class StopProbe(BaseException):
    """Enough was seen. A ``BaseException``, so that ``except Exception`` cannot swallow it."""
