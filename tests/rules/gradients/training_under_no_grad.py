import lightning
import torch
from torch import nn
from torch.nn import functional as F


@torch.no_grad()  # expect: training-under-no-grad
def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def train_and_validate(model, loader, optimizer):
    with torch.inference_mode():  # expect: training-under-no-grad
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

    @torch.no_grad()  # expect: training-under-no-grad
    def forward(self, x):
        return self.layers(x)


def fit(loader, other):
    network = Network()
    optimizer = torch.optim.Adam(network.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y) + other(x).mean()
        loss.backward()
        optimizer.step()


class Module(lightning.LightningModule):
    @torch.no_grad()  # expect: training-under-no-grad
    def training_step(self, batch, batch_idx):
        return self(batch).mean()

    @torch.no_grad()
    def validation_step(self, batch, batch_idx):
        return self(batch).mean()


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 8)

    @torch.no_grad()
    def forward(self, x):
        return self.encoder(x)


def head_on_frozen_features(loader):
    features, head = Frozen(), nn.Linear(8, 2)
    optimizer = torch.optim.Adam(head.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            z = features(x)
        F.cross_entropy(head(z), y).backward()
        optimizer.step()


def distilled(student, teacher, loader, optimizer):
    for x, _ in loader:
        with torch.no_grad():
            target = teacher(x).softmax(1)
        optimizer.zero_grad()
        F.cross_entropy(student(x), target).backward()
        optimizer.step()


@torch.no_grad()
def attack(model, x, y):
    with torch.enable_grad():
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
    return x + x.grad.sign()


def graph_from_outside(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        with torch.no_grad():
            loss.backward()
            optimizer.step()


def by_phase(model, loader, optimizer, phase):
    for x, y in loader:
        with torch.set_grad_enabled(phase == "train"):
            loss = F.cross_entropy(model(x), y)
            if phase == "train":
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()


class EnablesGradientsForTheLoss:
    def train(self, loader):
        with torch.no_grad():
            for x, y in loader:
                self.update(x, y)

    def update(self, x, y):
        with torch.enable_grad():
            loss = F.mse_loss(self.network.run(x), self.bootstrapped(y)).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def bootstrapped(self, y):
        with torch.no_grad():
            return self.target_network(y)


def log_and_update(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    if loss.requires_grad:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def update_where_there_is_a_graph(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    if loss.grad_fn is not None and torch.is_grad_enabled():
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def run_phase(what, model, optimizer, loader):
    train = True if what is "train" else False  # noqa: F632, SIM210
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def run_split(split, model, optimizer, loader):
    is_evaluation = not bool(split.lower().startswith("train"))
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if is_evaluation:
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def run_unless_tested(mode, model, optimizer, loader):
    is_test = (mode == "test") or (mode == "valid")
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if not is_test:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def run_by_mode(model, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if model.training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def run_anything(model, optimizer, loader, flag):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if flag:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def epochs(model, optimizer, loader, valid_loader):
    for _ in range(10):
        model.train()
        run_phase("train", model, optimizer, loader)
        run_split("Train", model, optimizer, loader)
        run_unless_tested("train", model, optimizer, loader)
        run_by_mode(model, optimizer, loader)
        for x, y in loader:
            log_and_update(model, optimizer, x, y)
            update_where_there_is_a_graph(model, optimizer, x, y)
        model.eval()
        with torch.no_grad():
            run_phase("valid", model, optimizer, valid_loader)
            run_split("Valid", model, optimizer, valid_loader)
            run_unless_tested("valid", model, optimizer, valid_loader)
            run_by_mode(model, optimizer, valid_loader)
            for x, y in valid_loader:
                log_and_update(model, optimizer, x, y)
                update_where_there_is_a_graph(model, optimizer, x, y)
        with torch.no_grad():  # expect: training-under-no-grad
            run_phase("train", model, optimizer, valid_loader)
        with torch.no_grad():  # expect: training-under-no-grad
            run_anything(model, optimizer, valid_loader, True)


# A loss computed under the decorator has no graph, wherever its parts come from.


class ActorCritic:
    @torch.no_grad()  # expect: training-under-no-grad
    def update_temperature(self, log_alpha, entropy_gap):
        alpha_loss = -(log_alpha * entropy_gap).mean()
        self.optimizer.zero_grad()
        alpha_loss.backward()
        self.optimizer.step()

    @torch.no_grad()  # expect: training-under-no-grad
    def finish_episode(self, policy):
        policy_loss = []
        for log_probability, reward in zip(policy.saved, policy.rewards):
            policy_loss.append(-log_probability * reward)
        policy_loss = torch.cat(policy_loss).sum()
        policy_loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def step_with_a_given_loss(self, output):
        loss = output.loss
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def step_with_a_closure(self, closure):
        with torch.enable_grad():
            loss = closure() / 2
            loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def step_with_an_unseen_loss(self, make_loss):
        loss = make_loss()
        loss.backward()


class Plugin:
    """The model and its loss hang on an object that nobody sees being made."""

    @torch.no_grad()  # expect: training-under-no-grad
    def before_iteration(self, strategy):
        strategy.model.train()
        output = strategy.model(self.x)
        loss = strategy._criterion(output, self.y)
        loss.backward()


@torch.no_grad()  # expect: training-under-no-grad
def step_on_named_output(model: torch.nn.Module, criterion, optimizer, batch):
    outputs = model(batch["ids"])
    loss = criterion(outputs.logits, batch["label"])
    loss.backward()
    optimizer.step()
