"""A medical language model: inference_mode on the evaluation, dropout as in training."""

import torch
from torch import nn
from torch.nn import functional as F


class Decoder(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, dropout=0.1), 4)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens)))


@torch.inference_mode()
def evaluate(model, eval_loader, device):
    total, count = 0.0, 0
    for tokens in eval_loader:
        tokens = tokens.to(device)
        logits = model(tokens[:, :-1])  # expect: eval-missing
        total += F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
        count += 1
    return total / count


def main(checkpoint: str, eval_loader, device: str):
    model = Decoder(32_000, 512).to(device)
    state = torch.load(checkpoint, map_location=device, weights_only=True)
    model.load_state_dict(state)
    print(evaluate(model, eval_loader, device))
