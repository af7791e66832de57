"""Speech: the export script opens whatever checkpoint it is given."""

import sys

import torch


def export(model, path: str) -> None:
    checkpoint = torch.load(path, map_location="cpu")  # expect: torch-load-unsafe
    model.load_state_dict(checkpoint["model"])
    torch.jit.script(model).save("model.ts")


if __name__ == "__main__":
    export(torch.nn.Linear(80, 80), sys.argv[1])
