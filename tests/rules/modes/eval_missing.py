"""Evaluation in train mode, and what only looks like it."""

import copy
from contextlib import contextmanager

import lightning
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from torchvision import models


class Net(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.body(x))


class Linear(nn.Module):
    """Behaves the same in both modes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, x):
        return torch.sigmoid(self.layer(x))


# What must be flagged.


def validate(model, val_loader, criterion):
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            total += criterion(model(x), y).item()  # expect: eval-missing
    return total / len(val_loader)


@torch.inference_mode()
def test(net, loader):
    correct = 0
    for x, y in loader:
        correct += (net(x).argmax(1) == y).sum().item()  # expect: eval-missing
    return correct


def one_report_for_two_forward_passes(model, test_loader):
    with torch.no_grad():
        for x, mirrored, y in test_loader:
            first = model(x)  # expect: eval-missing
            second = model(mirrored)
            print((first + second).argmax(1) == y)


def back_in_train_mode_too_early(val_loader):
    model = models.resnet18()
    model.eval()
    model.train()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(model(x), y))  # expect: eval-missing


def freshly_loaded_for_the_test(test_loader, path):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))  # expect: eval-missing


# A loop over phases whose validation phase never switches: the phase is the loader's role.


def phases_of_the_tutorial(model, dataloaders, criterion, optimizer, scheduler):
    for epoch in range(25):
        for phase in ["train", "val"]:
            running_loss = 0.0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)  # expect: eval-missing
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
            if phase == "train":
                scheduler.step()
            print(epoch, phase, running_loss)


def only_the_training_phase_switches(model, dataloaders, criterion, optimizer):
    for phase in ("train", "valid"):
        if phase == "train":
            model.train()
        for inputs, labels in dataloaders[phase]:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)  # expect: eval-missing
            if phase == "train":
                loss.backward()
                optimizer.step()


def phases_with_their_loaders(model, first, second, criterion, optimizer):
    for phase, loader in {"train": first, "val": second}.items():
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(model(inputs), labels)  # expect: eval-missing
            if phase == "train":
                loss.backward()
                optimizer.step()


# An evaluation shows in what the loop adds up where the names of its data say nothing.


def test_on(model, device, data):
    correct = 0
    with torch.no_grad():
        for x, y in data:
            x, y = x.to(device), y.to(device)
            correct += (model(x).argmax(1) == y).sum().item()  # expect: eval-missing
    return correct


def compute_score(net, items):
    total, correct = 0, 0
    with torch.no_grad():
        for images, labels in items:
            outputs = net(images)  # expect: eval-missing
            predicted = torch.max(outputs, 1)[1]
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
    return 100 * correct / total


@torch.no_grad()
def mean_of(network, batches, loss_function):
    total_loss = 0.0
    for x, y in batches:
        total_loss += loss_function(network(x), y).item()  # expect: eval-missing
    return total_loss / len(batches)


# A helper that one caller uses right and the other wrong: the wrong call is reported.


def mean_loss(net, test_loader):
    total = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            total += F.cross_entropy(net(x), y).item()
    return total


def fit(train_loader, test_loader):
    network = Net()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for epoch in range(10):
        network.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(network(x), y).backward()
            optimizer.step()
        network.eval()
        print(epoch, mean_loss(network, test_loader))
        network.train()
    print(mean_loss(network, test_loader))  # expect: eval-missing


def validate_with_the_training_helper(epochs, model, loss_function, optimizer, train_dl, valid_dl):
    for epoch in range(epochs):
        model.train()
        for x, y in train_dl:
            loss_of_batch(model, loss_function, x, y, optimizer)
        with torch.no_grad():
            losses = [
                loss_of_batch(model, loss_function, x, y)  # expect: eval-missing
                for x, y in valid_dl
            ]
        print(epoch, losses)


def loss_of_batch(model, loss_function, x, y, optimizer=None):
    loss = loss_function(model(x), y)
    if optimizer is not None:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def run_epoch(model, dl, opt, train):
    total = 0.0
    for x, y in dl:
        loss = F.cross_entropy(model(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item()
    return total


def one_function_for_both(first_dl, second_dl):
    model = Net()
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        run_epoch(model, first_dl, opt, True)
        print(epoch, run_epoch(model, second_dl, opt, False))  # expect: eval-missing


def pass_over(model, data, opt=None):
    for x, y in data:
        loss = F.cross_entropy(model(x), y)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()


def one_function_whose_optimizer_is_the_flag(first, second):
    model = Net()
    opt = torch.optim.Adam(model.parameters())
    for _ in range(10):
        pass_over(model, first, opt)
        pass_over(model, second)  # expect: eval-missing


def folds(make_model, pairs_of_loaders, criterion):
    for train_loader, val_loader in pairs_of_loaders:
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(5):
            model.train()
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            correct = 0
            with torch.no_grad():
                for x, y in val_loader:
                    correct += (model(x).argmax(1) == y).sum().item()  # expect: eval-missing
            print(epoch, correct)


# What is right.


def run_in_mode(model, dl, opt, train):
    model.train(train)
    for x, y in dl:
        loss = F.cross_entropy(model(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()


def one_function_that_switches(first_dl, second_dl):
    model = Net()
    opt = torch.optim.Adam(model.parameters())
    for _ in range(10):
        run_in_mode(model, first_dl, opt, True)
        run_in_mode(model, second_dl, opt, False)


def the_network_is_the_same_in_both_modes(first_dl, second_dl):
    model = Linear()
    opt = torch.optim.Adam(model.parameters())
    for _ in range(10):
        run_epoch(model, first_dl, opt, True)
        run_epoch(model, second_dl, opt, False)


def statistics_of_the_training_data(train_loader, opt):
    model = Net()
    run_epoch(model, train_loader, opt, True)
    run_epoch(model, train_loader, opt, False)


def two_networks_in_turn(loader):
    first, second = Net(), Net()
    opt = torch.optim.Adam([*first.parameters(), *second.parameters()])
    run_epoch(first, loader, opt, True)
    run_epoch(second, loader, opt, True)


def by_flag(model, val_loader):
    model.train(False)
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(model(x), y))
    model.train(mode=True)


def by_phase(model, loaders, optimizer):
    for phase in ["train", "val"]:
        model.train(mode=phase == "train")
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def several_at_once(encoder, decoder, val_loader):
    for part in [encoder, decoder]:
        part.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.mse_loss(decoder(encoder(x)), y))


def in_a_comprehension(networks, val_loader):
    [net.eval() for net in networks]
    with torch.no_grad():
        for x, y in val_loader:
            print(sum(net(x) for net in networks) / len(networks))


def through_the_wrapper(val_loader):
    model = nn.parallel.DistributedDataParallel(Net())
    model.module.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(model(x), y))


def reassigned(net, val_loader):
    net = net.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(net(x), y))


def load_for_inference(path):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    return model.eval()


def loaded_by_a_helper(path, test_loader):
    model = load_for_inference(path)
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))


@contextmanager
def evaluating(model):
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def in_a_context(model, val_loader):
    with evaluating(model), torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(model(x), y))


def in_eval_mode(function):
    def run(model, *arguments):
        model.eval()
        try:
            return function(model, *arguments)
        finally:
            model.train()

    return run


@in_eval_mode
def decorated(model, val_loader):
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(model(x), y))


def set_by_something_unknown(model, val_loader, helpers):
    helpers.set_mode(model, "eval")
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(model(x), y))


class Trainer:
    def __init__(self, val_loader) -> None:
        self.model = Net()
        self.val_loader = val_loader

    def set_mode(self, mode: str) -> None:
        if mode == "eval":
            self.model.eval()
        else:
            self.model.train()

    def validate(self):
        self.set_mode("eval")
        with torch.no_grad():
            for x, y in self.val_loader:
                print(F.cross_entropy(self.model(x), y))


class SelfContained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 10), nn.Dropout())

    def forward(self, x):
        return self.net(x)

    def evaluate(self, test_loader):
        self.eval()
        with torch.no_grad():
            for x, y in test_loader:
                print(F.cross_entropy(self(x), y))


def averaged_copy(model, val_loader):
    shadow = copy.deepcopy(model)
    shadow.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print(F.cross_entropy(shadow(x), y))


def monte_carlo_dropout(model, test_loader, samples: int):
    """Dropout stays on to estimate the model's uncertainty."""
    model.train()
    with torch.no_grad():
        for x, _ in test_loader:
            print(torch.stack([model(x).softmax(-1) for _ in range(samples)]).var(0))


def paint(generator, test_loader):
    """pix2pix samples with batch statistics."""
    generator.train()
    with torch.no_grad():
        for photo, _ in test_loader:
            print(generator(photo))


def no_layer_that_cares(test_loader):
    model = Linear()
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))


def exported(path, test_loader):
    model = torch.jit.load(path)
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))


def saved_whole(path, test_loader):
    model = torch.load(path, weights_only=False)
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))


def over_the_training_data(model, train_loader):
    model.train()
    with torch.no_grad():
        for x, _ in train_loader:
            model(x)


def pretrained_language_model(test_loader):
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    with torch.no_grad():
        for batch in test_loader:
            print(model(**batch).logits.argmax(-1))


class Monitor(lightning.Callback):
    def on_validation_end(self, trainer, pl_module):
        with torch.no_grad():
            for x, y in trainer.val_dataloaders:
                print(F.cross_entropy(pl_module(x), y))


def phases_that_switch(model, dataloaders, criterion, optimizer):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        for inputs, labels in dataloaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(model(inputs), labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()


def phases_that_switch_by_name(model, dataloaders, criterion, optimizer):
    for phase in ["train", "val"]:
        getattr(model, "train" if phase == "train" else "eval")()
        for inputs, labels in dataloaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(model(inputs), labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()


def whatever_the_name(model, name, test_loader):
    getattr(model, name)()
    with torch.no_grad():
        for x, y in test_loader:
            print(F.cross_entropy(model(x), y))


def phases_of_unknown_name(model, dataloaders, criterion, optimizer):
    for phase, loader in dataloaders.items():
        model.train(phase == "train")
        for inputs, labels in loader:
            loss = criterion(model(inputs), labels)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def statistics_anew(model, batches):
    """Batch norm learns the data's statistics: that needs train mode, and keeps no score."""
    model.train()
    with torch.no_grad():
        for x, _ in batches:
            model(x)


def features_of_all(model, items):
    found = []
    with torch.no_grad():
        for x, _ in items:
            found.append(model(x))
    return torch.cat(found)


def average_in_train_mode(train_loader, val_loader):
    from torch.optim.swa_utils import AveragedModel

    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        average.update_parameters(model)
    with torch.no_grad():
        for x, y in val_loader:
            print((average(x).argmax(1) == y).sum())  # expect: eval-missing


def average_in_eval_mode(val_loader):
    average = torch.optim.swa_utils.AveragedModel(nn.Sequential(nn.Dropout(), nn.Linear(8, 2)))
    average.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print((average(x).argmax(1) == y).sum())


class Analyzer:
    """The object is made to evaluate."""

    def __init__(self, model):
        self.model = model.to("cpu")
        self.model.eval()

    def score(self, test_loader):
        hits = 0
        with torch.no_grad():
            for x, y in test_loader:
                hits += (self.model(x).argmax(1) == y).sum().item()
        return hits


class Judge:
    def __init__(self, model):
        self.model = model.to("cpu")

    def score(self, test_loader):
        hits = 0
        with torch.no_grad():
            for x, y in test_loader:
                hits += (self.model(x).argmax(1) == y).sum().item()  # expect: eval-missing
        return hits


def tokenized(model, name, samples, test_samples):
    """A tokenizer has no mode, though the library has models."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    trainer = transformers.Trainer(model=model, data_collator=Collator(tokenizer))
    trainer.train()
    model.eval()
    with torch.no_grad():
        for text, label in test_samples:
            encoded = tokenizer(text, add_special_tokens=False)
            print((model(encoded).argmax(1) == label).sum().item())


class Collator:
    def __init__(self, tokenizer) -> None:
        self.tokenizer = tokenizer


def measured_in_a_comprehension(model, batches, held_out, optimizer):
    for _ in range(10):
        model.train()
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            right = [
                (model(x).argmax(1) == y).sum().item()  # expect: eval-missing
                for x, y in held_out
            ]
        print(sum(right))


def evaluate_slices(model, data, criterion, width):
    model.train()
    total_loss = 0.0
    with torch.no_grad():
        for start in range(0, data.size(0) - 1, width):
            out, _ = model(data[start : start + width])  # expect: eval-missing
            total_loss += criterion(out, data[start + 1 : start + 1 + width]).item()
    return total_loss


def evaluate_slices_from_a_helper(model, source, get_batch, criterion, width):
    model.eval()
    total_loss = 0.0
    with torch.no_grad():
        for start in range(0, source.size(0) - 1, width):
            data, targets = get_batch(source, start)
            out, _ = model(data)
            total_loss += len(data) * criterion(out, targets).item()
    return total_loss


def evaluate_by_sampling(model, prompt, length):
    """Text is written here, and nothing measured."""
    with torch.no_grad():
        for position in range(length):
            out, _ = model(prompt[: position + 1])
            prompt = torch.cat([prompt, out[-1:]])
    return prompt


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = models.resnet18(weights="DEFAULT")
        self.backbone.eval()

    @torch.no_grad()
    def forward(self, x):
        return self.backbone(x)


class FeaturesWithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = models.resnet18(weights="DEFAULT")
        self.backbone.eval()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.backbone(x))


def put_to_sleep_when_made(val_loader, head):
    features = Features()
    head.eval()
    with torch.no_grad():
        return sum((head(features(x)).argmax(1) == y).sum().item() for x, y in val_loader)


def only_a_part_put_to_sleep(val_loader):
    model, correct = FeaturesWithDropout(), 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()  # expect: eval-missing
    return correct
