"""Rules on weights that are kept, averaged, saved and loaded."""
