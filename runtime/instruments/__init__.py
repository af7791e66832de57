"""Measuring: hooks and patches inside torch that fill a trace, and judge nothing."""
