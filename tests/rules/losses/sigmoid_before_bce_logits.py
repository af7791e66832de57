import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.ops import sigmoid_focal_loss


class Recommender(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        self.user = nn.Embedding(users, 32)
        self.item = nn.Embedding(items, 32)
        self.output = nn.Linear(64, 1)
        self.sigmoid = nn.Sigmoid()

    def forward(self, user, item):
        pair = torch.cat([self.user(user), self.item(item)], dim=1)
        return self.sigmoid(self.output(pair))

    def score(self, user, item):
        pair = torch.cat([self.user(user), self.item(item)], dim=1)
        return self.output(pair)


class Experiment:
    def __init__(self, loader):
        self.loader = loader
        self.model = Recommender(100, 200)
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
        self.plain = nn.BCELoss()

    def epoch(self):
        for user, item, liked in self.loader:
            out = self.model(user, item).squeeze(1)
            loss = self.criterion(out, liked)  # expect: sigmoid-before-bce-logits
            loss = loss + self.plain(out, liked)
            loss = loss + self.criterion(self.model.score(user, item), liked)
            loss.backward()


def masks(net, image, mask):
    out = net(image)
    loss = F.binary_cross_entropy_with_logits(  # expect: sigmoid-before-bce-logits
        torch.sigmoid(out), mask
    )
    loss += F.binary_cross_entropy_with_logits(  # expect: sigmoid-before-bce-logits
        input=out.sigmoid()[:, 0], target=mask
    )
    loss += sigmoid_focal_loss(  # expect: sigmoid-before-bce-logits
        torch.sigmoid(out), mask, reduction="mean"
    )
    loss += sigmoid_focal_loss(out, mask, reduction="mean")
    return loss


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, inputs, targets):
        bce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p = torch.sigmoid(inputs)
        hard = (1 - p * targets - (1 - p) * (1 - targets)) ** self.gamma
        return (hard * bce).mean()


class Segmenter(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Conv2d(3, 16, 3)
        self.head = nn.Conv2d(16, classes, 1)

    def forward(self, x):
        return torch.sigmoid(self.head(self.body(x)))


def train_focal(loader):
    model = Segmenter(1)
    criterion = FocalLoss()
    for image, mask in loader:
        criterion(model(image), mask).backward()  # expect: sigmoid-before-bce-logits
        criterion(model.head(model.body(image)), mask).backward()


def train_dice_and_bce(loader, net):
    """Sigmoid for one term and for the metrics, logits for the other."""
    criterion = nn.BCEWithLogitsLoss()
    for image, mask in loader:
        logits = net(image)
        probability = torch.sigmoid(logits)
        dice = 1 - (2 * (probability * mask).sum()) / (probability.sum() + mask.sum() + 1.0)
        (criterion(logits, mask) + dice).backward()
        print(((probability > 0.5) == mask).float().mean())


def detection_loss(head, feature, target):
    """The offsets are squashed, the class scores are not."""
    out = head(feature)
    xy = torch.sigmoid(out[..., :2])
    loss = F.mse_loss(xy, target[..., :2])
    return loss + F.binary_cross_entropy_with_logits(out[..., 4:], target[..., 4:])


def distil(student, teacher, loader):
    for x, _ in loader:
        soft = torch.sigmoid(teacher(x))
        F.binary_cross_entropy_with_logits(student(x), soft).backward()


class Patch(nn.Module):
    """The final sigmoid depends on the adversarial loss that is used."""

    def __init__(self, use_sigmoid=False):
        super().__init__()
        sequence = [nn.Conv2d(3, 64, 4), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 1, 4)]
        if use_sigmoid:
            sequence += [nn.Sigmoid()]
        self.model = nn.Sequential(*sequence)

    def forward(self, x):
        return self.model(x)


def adversarial(loader, options):
    critic = Patch(use_sigmoid=options.gan == "vanilla")
    plain = Patch()
    squashed = Patch(use_sigmoid=True)
    for image, real in loader:
        F.binary_cross_entropy_with_logits(critic(image), real).backward()
        F.binary_cross_entropy_with_logits(plain(image), real).backward()
        F.binary_cross_entropy_with_logits(  # expect: sigmoid-before-bce-logits
            squashed(image), real
        ).backward()


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.confidence = nn.Sequential(nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, x):
        return self.confidence(x)

    def loss(self, x, target):
        return F.binary_cross_entropy_with_logits(self.confidence[0](x), target)


def train_matcher(loader):
    model = Matcher()
    for x, target in loader:
        model.loss(x, target).backward()
