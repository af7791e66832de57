"""Jupyter notebooks as Python text, and changed text back into the notebook."""

from trainlint.notebook.notebook import Notebook

__all__ = ["Notebook"]
