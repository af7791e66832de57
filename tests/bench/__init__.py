"""Benchmarks: commands that anyone can run, not timed tests."""
