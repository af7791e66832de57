import torch
import torchvision.transforms as T
from torch import nn
from tqdm import tqdm


class Positions(nn.Module):
    def __init__(self, length, width, device):
        super().__init__()
        self.table = torch.zeros(length, width)
        self.project = nn.Linear(width, width)
        self.project.to(device)
        pe = torch.arange(length).unsqueeze(1).float()
        pe.to(device)  # expect: to-result-discarded
        self.pe = pe

    def forward(self, x):
        self.table.to(x.device)  # expect: to-result-discarded
        x.contiguous()  # expect: to-result-discarded
        return self.project(x) + self.table


def train(model, criterion, optimizer, train_loader, device):
    model.to(device)
    model.float()
    for images, labels in train_loader:
        images.to(device)  # expect: to-result-discarded
        labels.cuda(non_blocking=True)  # expect: to-result-discarded
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def scale(image: torch.Tensor):
    image.float().div(255)  # expect: to-result-discarded
    return image


def build(train, jitter):
    pipeline = [T.ToTensor()]
    if train and jitter:
        T.RandomApply([T.ColorJitter(0.1, 0.1)], p=0.5)  # expect: to-result-discarded
    if train:
        pipeline.append(T.RandomHorizontalFlip())
    return T.Compose(pipeline)


def right(loader, device, threshold):
    x = torch.zeros(3)
    x = x.to(device)
    x.clamp_(0, 1)
    x.float().mul_(2)
    torch.add(x, 1, out=x)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
    return x.to(device)


def unknown(batch, batches, network, frame, device):
    batch.to(device)
    network.cuda()
    frame.squeeze()
    for item in batches:
        item.to(device)
    for i, batch in enumerate(batches):
        batch.to(device)


def expected_to_fail(pytest):
    x = torch.zeros(3)
    with pytest.raises(RuntimeError):
        x.view(2, 2)
    try:
        x.to("nowhere")
    except RuntimeError:
        pass


def module_or_tensor(flag, device):
    thing = torch.zeros(3) if flag else nn.Linear(3, 3)
    thing.to(device)
    layer = nn.Linear(3, 3)
    layer.half()


def with_a_progress_bar(model, train_loader, device):
    for i, (images, target) in enumerate(tqdm(train_loader)):
        images.to(device)  # expect: to-result-discarded
        target = target.to(device)
        print(i, model(images), target)
    for batch in tqdm(train_loader):
        batch.to(device)


def mixed_later_in_the_lap(model, train_loader, mix, device):
    for images, target in train_loader:
        images.to(device)  # expect: to-result-discarded
        images, target = mix(images, target)
        images.to(device)
        print(model(images), target)
