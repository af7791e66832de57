"""Rules of another distribution, as small as they can be: they judge which functions are called."""
