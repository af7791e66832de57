"""trainlint finds the training bugs that do not crash."""

__version__ = "0.1.0"
