"""From a command line to traces: the parent that starts child runs, and the child itself."""
