"""A diffusion prior whose loss gets the target first; the loss is symmetric today."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class DiffusionPrior(nn.Module):
    def __init__(self, net, loss_type="l2", predicts_start=True):
        super().__init__()
        self.net = net
        self.predicts_start = predicts_start
        self.loss_fn = F.l1_loss if loss_type == "l1" else F.mse_loss

    def forward(self, image_embed, noisy_embed, times):
        noise = torch.randn_like(image_embed)
        pred = self.net(noisy_embed, times)
        target = image_embed if self.predicts_start else noise
        return self.loss_fn(target, pred)  # expect: loss-arg-swap
