"""``python -m trainlint.runtime``: the probe command on its own."""

from trainlint.runtime.command import probe

if __name__ == "__main__":
    probe(prog_name="python -m trainlint.runtime")
