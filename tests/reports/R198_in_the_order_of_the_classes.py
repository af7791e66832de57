"""ImageNet from folders: the loaders' common options say nothing of an order."""

import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms


def make_loader(root, transform, batch_size=256, num_workers=8, shuffle=False):
    dataset = torchvision.datasets.ImageFolder(root, transform)
    return DataLoader(
        dataset, batch_size=batch_size, shuffle=shuffle, num_workers=num_workers, pin_memory=True
    )


def main(epochs=90):
    crop = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    plain = transforms.Compose(
        [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    )
    train_loader = make_loader("imagenet/train", crop)  # expect: train-loader-no-shuffle
    val_loader = make_loader("imagenet/val", plain)
    model = torchvision.models.resnet18().cuda()
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            criterion(model(images.cuda()), labels.cuda()).backward()
            optimizer.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for images, labels in val_loader:
                correct += (model(images.cuda()).argmax(1) == labels.cuda()).sum().item()
        print(epoch, correct / len(val_loader.dataset))


if __name__ == "__main__":
    main()
