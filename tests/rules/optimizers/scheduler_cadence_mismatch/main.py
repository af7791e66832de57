import torch
from engine import train_one_epoch, train_one_epoch_of_many
from torch.utils.data import DataLoader


def main(model, dataset, args):
    train_loader = DataLoader(dataset, batch_size=32, shuffle=True)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, train_loader, optimizer, scheduler)


def main_by_batch(model, dataset, args):
    train_loader = DataLoader(dataset, batch_size=32, shuffle=True)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    total = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total)
    for epoch in range(args.epochs):
        train_one_epoch_of_many(model, criterion, train_loader, optimizer, scheduler)
