"""Drawing: the verdict for the terminal, as JSON, and as one self-contained HTML file."""
