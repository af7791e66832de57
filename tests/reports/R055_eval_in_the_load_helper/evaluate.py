"""Speech synthesis: the script itself never says ``eval()``; the helper does."""
# never: eval-missing

import sys

import torch
from loading import load_model


def main(path: str, test_loader, device: str) -> None:
    model = load_model(path, device)
    total = 0.0
    with torch.no_grad():
        for mel, audio in test_loader:
            total += torch.nn.functional.l1_loss(model(mel.to(device)), audio.to(device)).item()
    print(total / len(test_loader))


if __name__ == "__main__":
    main(sys.argv[1], [], "cpu")
