"""Gradients: how they are made, kept and cleared."""
