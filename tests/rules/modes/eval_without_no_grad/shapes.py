"""Evaluations that build graphs, and those that must, may, or do not."""

from contextlib import ExitStack

import torch
from torch import nn
from torch.nn import functional as F
from torchvision import models


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.body(x))


# What must be flagged.


def validate(model, val_loader, criterion):
    model.eval()
    outputs = []
    for x, y in val_loader:
        output = model(x)  # expect: eval-without-no-grad
        outputs.append(output)
        print(criterion(output, y).item())


def test_loss(network, test_loader):
    losses = []
    for x, y in test_loader:
        output = network(x)  # expect: eval-without-no-grad
        losses.append(F.cross_entropy(output, y).item())
    return losses


def graph_network(features, adjacency, labels, train, val, epochs: int):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(features)[train], labels[train]).backward()
        optimizer.step()
    model.eval()
    output = model(features)  # expect: eval-without-no-grad
    print("test", (output.argmax(1)[val] == labels[val]).float().mean().item())


def evaluate(model, data, window: int):
    model.eval()
    total = 0.0
    for i in range(0, len(data) - 1, window):
        inputs, targets = data[i : i + window], data[i + 1 : i + 1 + window]
        total += F.cross_entropy(model(inputs), targets).item()  # expect: eval-without-no-grad
    return total


def predict_class(model, sentence):
    model.eval()
    scores = model(sentence)  # expect: eval-without-no-grad
    return scores.argmax(1).item()


def mean_loss(net, test_loader):
    return sum(F.cross_entropy(net(x), y).item() for x, y in test_loader)


def some_callers_only(test_loader):
    net = Net()
    net.eval()
    with torch.no_grad():
        print("before", mean_loss(net, test_loader))
    print("after", mean_loss(net, test_loader))  # expect: eval-without-no-grad


class AutoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(784, 16), nn.Linear(16, 784)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def only_the_whole_is_reported(test_loader):
    model = AutoEncoder()
    model.eval()
    for x, _ in test_loader:
        print(F.mse_loss(model(x), x).item())  # expect: eval-without-no-grad
    with torch.no_grad():
        print(model.decoder(torch.randn(4, 16)))


# What is right.


@torch.no_grad()
def decorated(model, val_loader):
    model.eval()
    for x, y in val_loader:
        print(F.cross_entropy(model(x), y))


class Trainer:
    def __init__(self, model, val_loader) -> None:
        self.model = model
        self.val_loader = val_loader

    @torch.inference_mode()
    def validate(self):
        self.model.eval()
        for x, y in self.val_loader:
            print(F.cross_entropy(self.model(x), y))


def switched_off(model, test_loader):
    torch.set_grad_enabled(False)
    model.eval()
    for x, y in test_loader:
        print(F.cross_entropy(model(x), y))
    torch.set_grad_enabled(True)


def by_phase(model, loaders, optimizer):
    for phase in ("train", "val"):
        model.train(phase == "train")
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def run_over_test_set(model, test_loader):
    model.eval()
    return [model(x).argmax(1) for x, _ in test_loader]


def caller_holds_the_context(model, test_loader):
    with torch.no_grad():
        return run_over_test_set(model, test_loader)


def by_the_framework(trainer, model, test_loader):
    trainer.validate(model, test_loader)


def robust_accuracy(model, test_loader, epsilon: float):
    model.eval()
    for x, y in test_loader:
        x.requires_grad_()
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            attacked = x + epsilon * x.grad.sign()
            print((model(attacked).argmax(1) == y).float().mean())


def saliency(model, image):
    model.eval()
    image.requires_grad_()
    score = model(image).max()
    return torch.autograd.grad(score, image)[0]


def forces(model, test_loader):
    model.eval()
    for positions, reference in test_loader:
        positions.requires_grad_()
        energy = model(positions).sum()
        force = -torch.autograd.grad(energy, positions)[0]
        print((force - reference).abs().mean().item())


def adapt_at_test_time(model, test_loader, optimizer):
    model.eval()
    for x, _ in test_loader:
        loss = -(model(x).softmax(1) * model(x).log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def perceptual_loss(generated, target):
    vgg = models.vgg16().features
    vgg.eval()
    features = vgg(generated)
    return features


def distil(teacher, student, loader, optimizer):
    teacher.eval()
    student.train()
    for x, _ in loader:
        with torch.no_grad():
            wanted = teacher(x)
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def differentiable_teacher(teacher, generator, optimizer, steps: int):
    teacher.eval()
    for _ in range(steps):
        image = generator(torch.randn(8, 64))
        loss = -teacher(image).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def style_transfer(content, steps: int):
    features = models.vgg19().features.eval()
    image = content.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([image])

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(features(image), features(content))
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)


def shapes(model):
    model.eval()
    output = model(torch.randn(2, 3, 32, 32))
    print(output.shape)


def switched_inside_the_epochs(model, batches, held_out, optimizer):
    for _ in range(10):
        model.train()
        for x, y in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        right = 0
        for x, y in held_out:
            right += (model(x).argmax(1) == y).sum()  # expect: eval-without-no-grad
        print(right)


def on_a_stack(model, loaders, optimizer):
    for phase in ("train", "valid"):
        model.train(phase == "train")
        with ExitStack() as stack:
            if phase == "valid":
                stack.enter_context(torch.no_grad())
            for x, y in loaders[phase]:
                loss = F.cross_entropy(model(x), y)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()


def clears_what_it_never_computes(model, test_loader):
    model.eval()
    right = 0
    for x, y in test_loader:
        model.zero_grad()
        right += (model(x).argmax(1) == y).sum()  # expect: eval-without-no-grad
    return right


def drawn_now_and_then(model, loader, optimizer, shown, draw):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        if step % 100 == 0:
            model.eval()
            draw(model(shown))
            model.train()


def timed(weights, size, batches):
    model = Net()
    model.load_state_dict(weights)
    model.eval()
    model(torch.zeros(1, size).to("cuda").type_as(next(model.parameters())))
    with torch.inference_mode():
        return [model(batch).argmax(1) for batch in batches]


def run_once_for_its_scores(weights, size):
    model = Net()
    model.load_state_dict(weights)
    model.eval()
    image = torch.zeros(1, size).to("cuda")
    scores = model(image)  # expect: eval-without-no-grad
    print(scores.argmax(1).item())


def lazy_layers_get_their_sizes(model, keys, width):
    model.eval()
    batch = {key: torch.rand(32, width) for key in keys}
    model(batch)
    model.train()
    return torch.optim.Adam(model.parameters())
