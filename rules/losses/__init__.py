"""Losses: what goes into them."""
