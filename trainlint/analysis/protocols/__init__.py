"""Facts about the order of events that several rules read."""
