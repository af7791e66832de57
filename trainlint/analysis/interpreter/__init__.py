"""Runs code abstractly: values with identity in, a trace of events out."""

from trainlint.analysis.interpreter.runs import Run, runs_of

__all__ = ["Run", "runs_of"]
