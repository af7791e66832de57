"""Data: loaders, samplers, datasets, arguments."""
