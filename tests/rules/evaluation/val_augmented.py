"""Image data for training and evaluation: whose transforms draw at random."""

import copy

import albumentations as A
import torchvision
from torch.utils.data import DataLoader, Dataset, Subset, random_split
from torchvision import datasets, transforms


# What must be flagged.


def one_transform_for_both(root):
    transform = transforms.Compose(
        [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    )
    trainset = datasets.CIFAR10(root, train=True, transform=transform)
    testset = datasets.CIFAR10(root, train=False, transform=transform)  # expect: val-augmented
    trainloader = DataLoader(trainset, batch_size=128, shuffle=True)
    testloader = DataLoader(testset, batch_size=128)
    return trainloader, testloader


def split_of_an_augmented_whole(folder):
    augment = transforms.Compose([transforms.ColorJitter(0.4), transforms.ToTensor()])
    full = datasets.ImageFolder(folder, augment)
    train_set, val_set = random_split(full, [900, 100])  # expect: val-augmented
    train_loader = DataLoader(train_set, 32, shuffle=True)
    val_loader = DataLoader(val_set, 32)
    return train_loader, val_loader


class Masks(Dataset):
    def __init__(self, images, transform=None):
        self.images = images
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(self.images[index])


def with_albumentations(train_images, val_images):
    augment = A.Compose([A.Resize(256, 256), A.HorizontalFlip(p=0.5), A.Normalize()])
    train_set = Masks(train_images, augment)
    val_set = Masks(val_images, transform=augment)  # expect: val-augmented
    return DataLoader(train_set, 8, shuffle=True), val_loader_of(val_set)


def val_loader_of(dataset):
    return DataLoader(dataset, 8)


def part_by_indices(folder, indices):
    full = datasets.ImageFolder(folder, transforms.RandomResizedCrop(224))
    val_set = Subset(full, indices)  # expect: val-augmented
    val_loader = DataLoader(val_set, 32)
    return val_loader


class Digits(Dataset):
    def __init__(self, is_train, folder, augment=False):
        self.folder = folder
        if augment and not is_train:
            self.transform = transforms.Compose(
                [
                    transforms.RandomRotation(10),  # expect: val-augmented
                    transforms.ToTensor(),
                ]
            )
        else:
            self.transform = transforms.ToTensor()


def inverted_condition(train_folder, test_folder, augment=False):
    train_set = Digits(True, train_folder, augment)
    test_set = Digits(False, test_folder, augment)
    train_loader = DataLoader(train_set, 32, shuffle=True)
    test_loader = DataLoader(test_set, 32)
    return train_loader, test_loader


# What must not.


def a_transform_each(root):
    augment = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.ToTensor()])
    plain = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(32), transforms.ToTensor()])
    train_loader = DataLoader(datasets.CIFAR10(root, True, transform=augment), 128, shuffle=True)
    test_loader = DataLoader(datasets.CIFAR10(root, False, transform=plain), 128)
    return train_loader, test_loader


def chosen_by_phase(folder):
    tables = {
        "train": transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()]),
        "val": transforms.Compose([transforms.CenterCrop(224), transforms.ToTensor()]),
    }
    sets = {phase: datasets.ImageFolder(f"{folder}/{phase}", tables[phase]) for phase in tables}
    val_set = datasets.ImageFolder(folder, tables["val"])
    val_loader = DataLoader(val_set, 32)
    test_loader = DataLoader(sets["val"], 32)
    return val_loader, test_loader


def transform_for(is_train):
    if is_train:
        return transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    return transforms.Compose([transforms.CenterCrop(224), transforms.ToTensor()])


def from_a_function(folder):
    val_set = datasets.ImageFolder(folder, transform_for(is_train=False))
    return {"val_loader": DataLoader(val_set, 32)}


class Transformed(Dataset):
    def __init__(self, part, transform):
        self.part = part
        self.transform = transform


def wrapped_parts(folder, augment, plain):
    full = datasets.ImageFolder(folder)
    train_part, val_part = random_split(full, [0.8, 0.2])
    train_loader = DataLoader(Transformed(train_part, transforms.RandomCrop(32)), 32, shuffle=True)
    val_loader = DataLoader(Transformed(val_part, transforms.CenterCrop(32)), 32)
    return train_loader, val_loader


def copied_whole(folder):
    full = datasets.ImageFolder(folder, transforms.RandomResizedCrop(224))
    train_set, val_set = random_split(full, [0.8, 0.2])
    val_set.dataset = copy.copy(full)
    val_set.dataset.transform = transforms.CenterCrop(224)
    val_loader = DataLoader(val_set, 32)
    return DataLoader(train_set, 32, shuffle=True), val_loader


def averaged_over_views(folder):
    test_set = datasets.ImageFolder(folder, transforms.RandomResizedCrop(224))
    tta_test_loader = DataLoader(test_set, 32)
    return tta_test_loader


def only_for_training(folder):
    train_set = torchvision.datasets.ImageFolder(folder, transforms.RandomHorizontalFlip())
    train_loader = DataLoader(train_set, 32, shuffle=True)
    return train_loader


class SwitchedByFlag(Dataset):
    def __init__(self, images, is_train, size=64):
        self.images = images
        self.is_train = is_train
        self.jitter = transforms.ColorJitter(0.4)
        self.resize = transforms.Resize(size)

    def __getitem__(self, index):
        image = self.resize(self.images[index])
        if self.is_train:
            if index % 2:
                image = self.jitter(image)
        return image


class SwitchedBySplit(Dataset):
    def __init__(self, images, split):
        self.images = images
        self.split = split
        self.crop = transforms.RandomCrop(64)
        self.middle = transforms.CenterCrop(64)

    def __getitem__(self, index):
        if self.split == "train":
            return self.crop(self.images[index])
        return self.middle(self.images[index])


class NeverSwitchedOff(Dataset):
    def __init__(self, images, is_train):
        self.images = images
        self.is_train = is_train
        self.jitter = transforms.ColorJitter(0.4)

    def __getitem__(self, index):
        image = self.images[index]
        if not self.is_train:
            return self.jitter(image)
        return image


def switched_off_for_evaluation(images, held_out):
    train_set = SwitchedByFlag(images, is_train=True)
    val_set = SwitchedByFlag(held_out, is_train=False)
    train_loader = DataLoader(train_set, 32, shuffle=True)
    val_loader = DataLoader(val_set, 32)
    return train_loader, val_loader


def switched_off_by_split(images, held_out):
    train_loader = DataLoader(SwitchedBySplit(images, "train"), 32, shuffle=True)
    val_loader = DataLoader(SwitchedBySplit(held_out, "val"), 32)
    return train_loader, val_loader


def left_on_for_evaluation(images, held_out):
    train_loader = DataLoader(SwitchedByFlag(images, is_train=True), 32, shuffle=True)
    val_set = SwitchedByFlag(held_out, is_train=True)  # expect: val-augmented
    val_loader = DataLoader(val_set, 32)
    return train_loader, val_loader


def on_for_evaluation_only(images, held_out):
    train_loader = DataLoader(NeverSwitchedOff(images, is_train=True), 32, shuffle=True)
    val_set = NeverSwitchedOff(held_out, is_train=False)  # expect: val-augmented
    val_loader = DataLoader(val_set, 32)
    return train_loader, val_loader


def set_through_the_parts(folder):
    augment = transforms.Compose([transforms.RandomCrop(32), transforms.ToTensor()])
    plain = transforms.ToTensor()
    full = datasets.ImageFolder(folder)
    train_set, val_set = random_split(full, [900, 100])
    train_set.dataset.transform = augment
    val_set.dataset.transform = plain  # expect: val-augmented
    return DataLoader(train_set, 32, shuffle=True), DataLoader(val_set, 32)


def set_through_a_whole_of_its_own(folder):
    augment = transforms.Compose([transforms.RandomCrop(32), transforms.ToTensor()])
    plain = transforms.ToTensor()
    full = datasets.ImageFolder(folder)
    train_set, val_set = random_split(full, [900, 100])
    val_set.dataset = copy.copy(full)
    train_set.dataset.transform = augment
    val_set.dataset.transform = plain
    return DataLoader(train_set, 32, shuffle=True), DataLoader(val_set, 32)


def set_when_training_is_over(folder, train, evaluate):
    full = datasets.ImageFolder(folder)
    train_set, val_set = random_split(full, [900, 100])
    train_set.dataset.transform = transforms.Compose([transforms.RandomCrop(32), transforms.ToTensor()])
    for _ in range(10):
        train(DataLoader(train_set, 32, shuffle=True))
    val_set.dataset.transform = transforms.ToTensor()
    evaluate(DataLoader(val_set, 32))


class PlainScenes(Dataset):
    """Nothing uses the crop."""

    def __init__(self, images):
        self.images = images
        self.crop = transforms.RandomCrop(224)
        self.to_tensor = transforms.ToTensor()

    def __getitem__(self, index):
        return self.to_tensor(self.images[index])


def plain_scenes(val_images):
    return {"val_loader": DataLoader(PlainScenes(val_images), 8)}
