from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer


def main(images, labels):
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    trainer = Trainer(nn.Linear(64, 10), loader)
    for _ in range(90):
        trainer.train()
