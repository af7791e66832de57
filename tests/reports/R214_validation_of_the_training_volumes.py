"""Medical segmentation: both loaders are built from the training volumes."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader


def run(model, volumes, augment, base_lr: float, epochs: int):
    db_train = volumes(split="train", transform=augment)
    db_val = volumes(split="val", transform=None)
    train_loader = DataLoader(db_train, batch_size=24, shuffle=True, num_workers=8)
    val_loader = DataLoader(db_train, batch_size=1, shuffle=False)  # expect: eval-on-train-data
    print(f"{len(db_train)} volumes to train on, {len(db_val)} to validate")
    optimizer = torch.optim.SGD(model.parameters(), lr=base_lr, momentum=0.9, weight_decay=1e-4)
    for epoch in range(epochs):
        model.train()
        for batch in train_loader:
            loss = F.cross_entropy(model(batch["image"].cuda()), batch["label"].cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0.0
        with torch.no_grad():
            for batch in val_loader:
                total += F.cross_entropy(model(batch["image"].cuda()), batch["label"].cuda()).item()
        print(epoch, total / len(val_loader))
