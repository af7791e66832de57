"""A VAE with an adversary in Lightning, optimised by hand: gradients cleared on every call."""

import lightning as L
from torch.nn import functional as F


class AutoencoderWithAdversary(L.LightningModule):
    def __init__(self, encoder, accumulate):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = encoder
        self.accumulate = accumulate

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()  # expect: zero-grad-breaks-accumulation
        loss = F.l1_loss(self.encoder(batch), batch) / self.accumulate
        self.manual_backward(loss)
        if (batch_idx + 1) % self.accumulate == 0:
            optimizer.step()
