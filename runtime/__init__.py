"""The probe: run a training script for a few steps under instruments, and judge what was seen.

Data flows one way: ``launch`` runs the script, ``instruments`` measure into a ``trace``, ``checks``
judge the trace, ``report`` shows the verdict. Only ``instruments``, ``phases``, ``sandbox`` and the
child half of ``launch`` import torch.
"""

from __future__ import annotations

from trainlint.runtime.api import ProbeFailedError, assert_trains, probe

__all__ = ["ProbeFailedError", "assert_trains", "probe"]
