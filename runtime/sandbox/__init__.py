"""Keeping the user's files and trackers untouched while the probe runs the script."""
