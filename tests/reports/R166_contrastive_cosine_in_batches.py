import torch
import torch.nn.functional as F


def main(encoder, train_loader, epochs, temperature):
    optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-4, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=len(train_loader), eta_min=0, last_epoch=-1
    )
    for epoch in range(epochs):
        encoder.train()
        for views, _ in train_loader:
            features = F.normalize(encoder(torch.cat(views)), dim=1)
            similarity = features @ features.T / temperature
            loss = F.cross_entropy(similarity, torch.arange(len(similarity)).roll(len(views[0])))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch >= 10:
            scheduler.step()  # expect: scheduler-cadence-mismatch
