"""Evaluation: what is measured, on which data, and what is kept of it."""
