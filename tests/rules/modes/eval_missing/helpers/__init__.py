"""Hands on what its module defines."""

from .scores import accuracy_of

__all__ = ["accuracy_of"]
