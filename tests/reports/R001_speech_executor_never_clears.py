"""Speech recognition: the executor gets the optimizer as an argument, and nobody clears it."""

import logging

import torch
from torch.nn.utils import clip_grad_norm_


class Executor:
    def __init__(self) -> None:
        self.step = 0

    def train(self, model, optimizer, scheduler, data_loader, device, clip: float, log_interval: int):
        model.train()
        for batch_idx, batch in enumerate(data_loader):
            key, feats, target, feats_lengths, target_lengths = batch
            feats, target = feats.to(device), target.to(device)
            loss, loss_ctc = model(feats, feats_lengths, target, target_lengths)
            loss.backward()  # expect: zero-grad-missing
            grad_norm = clip_grad_norm_(model.parameters(), clip)
            if torch.isfinite(grad_norm):
                optimizer.step()
            scheduler.step()
            self.step += 1
            if batch_idx % log_interval == 0:
                logging.debug("batch %d loss %.4f ctc %.4f", batch_idx, loss.item(), loss_ctc.item())
