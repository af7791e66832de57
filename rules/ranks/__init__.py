"""Rules on training with several ranks: wrapping, collectives, and who writes files."""
