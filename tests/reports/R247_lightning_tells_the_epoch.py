"""Lightning calls ``set_epoch`` on the sampler itself."""
# never: sampler-set-epoch-missing

import lightning
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, DistributedSampler


class Data(lightning.LightningDataModule):
    def __init__(self, dataset) -> None:
        super().__init__()
        self.dataset = dataset

    def train_dataloader(self):
        return DataLoader(self.dataset, batch_size=32, sampler=DistributedSampler(self.dataset))


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(32, 10)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def main(dataset) -> None:
    trainer = lightning.Trainer(max_epochs=10, strategy="ddp", devices=2)
    trainer.fit(Model(), datamodule=Data(dataset))
