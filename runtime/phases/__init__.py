"""What the probe adds to a run: a held batch, extra forwards on a copy, a replay of a NaN."""
