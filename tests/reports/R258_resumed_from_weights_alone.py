"""Detection: ``--resume`` loads the weights, and everything else starts anew."""

import argparse

import torch


def main(model: torch.nn.Module, train_loader, detection_loss) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--epochs", type=int, default=90)
    args = parser.parse_args()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [60, 80])
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")  # expect: resume-incomplete
        model.load_state_dict(checkpoint["model"])
    for epoch in range(args.epochs):
        model.train()
        for images, boxes in train_loader:
            optimizer.zero_grad()
            detection_loss(model(images), boxes).backward()
            optimizer.step()
        scheduler.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "last.pt")
