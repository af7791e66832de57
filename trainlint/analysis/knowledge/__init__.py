"""Facts about torch and the libraries around it, as tables."""
