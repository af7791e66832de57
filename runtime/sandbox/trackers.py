"""Experiment trackers are switched off or pointed at the run folder before the script starts."""

from __future__ import annotations

import os
from pathlib import Path


def quiet(folder: Path) -> None:
    """Set the environment by which each tracker can be kept from the network and the project."""
    settings = {
        "WANDB_MODE": "disabled",
        "WANDB_SILENT": "true",
        "WANDB_DIR": str(folder),
        "MLFLOW_TRACKING_URI": f"file:{folder / 'mlflow'}",
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "COMET_OFFLINE_DIRECTORY": str(folder),
        "COMET_MODE": "disabled",
        "NEPTUNE_MODE": "debug",
        "CLEARML_OFFLINE_MODE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    os.environ.update(settings)
