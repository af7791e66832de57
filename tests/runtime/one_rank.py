"""One rank of several probes: a process under torchrun for each probe would import torch anew.

    RANK=0 WORLD_SIZE=2 ... python one_rank.py PORT SCRIPT [PORT SCRIPT ...]

Prints one JSON report a line (rank 0 only; other ranks print the exit code).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from scripts import probe_here


def main() -> None:
    """Probe each script, as the rank that the environment names."""
    arguments = sys.argv[1:]
    for port, script in zip(arguments[::2], arguments[1::2], strict=True):
        os.environ["MASTER_PORT"] = port
        folder = Path(script).parent
        done = probe_here(folder, "--output-format", "json", "--steps", "6", script)
        print(json.dumps(json.loads(done.stdout)) if done.stdout else done.exit_code, flush=True)


if __name__ == "__main__":
    main()
