"""Saving and restoring every random state a training script commonly draws from."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy
import torch


@dataclass
class RandomState:
    """The states of Python's, numpy's and torch's default generators."""

    python: Any
    numpy: Any
    cpu: torch.Tensor
    cuda: list[torch.Tensor]

    @staticmethod
    def take() -> RandomState:
        """Read the present states."""
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return RandomState(random.getstate(), numpy.random.get_state(), torch.get_rng_state(), cuda)

    def restore(self) -> None:
        """Go back to these states."""
        random.setstate(self.python)
        numpy.random.set_state(self.numpy)
        torch.set_rng_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(self.cuda)
