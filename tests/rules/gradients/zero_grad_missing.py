"""Gradients that are never cleared, and the many ways of clearing them."""

import lightning
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Linear(784, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))


# What must be flagged.


def plain(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()  # expect: zero-grad-missing
        optimizer.step()


def only_one_branch(model, loader, criterion, use_amp: bool):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        if use_amp:
            with torch.autocast("cuda"):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()  # expect: zero-grad-missing
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()


def clears_the_other_one(generator, discriminator, loader):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_d = torch.optim.Adam(discriminator.parameters())
    bce = nn.BCEWithLogitsLoss()
    for real in loader:
        fake = generator(torch.randn(real.size(0), 64))
        d_loss = bce(discriminator(real), torch.ones(1)) + bce(
            discriminator(fake.detach()), torch.zeros(1)
        )
        d_loss.backward()  # expect: zero-grad-missing
        optimizer_d.step()
        optimizer_g.zero_grad()
        bce(discriminator(fake), torch.ones(1)).backward()
        optimizer_g.step()


class Executor:
    def __init__(self, net: Net, optimizer) -> None:
        self.net = net
        self.optimizer = optimizer

    def run(self, loader, loss_fn):
        for x, y in loader:
            loss = loss_fn(self.net(x), y)
            loss.backward()  # expect: zero-grad-missing
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.optimizer.step()


def accelerated(accelerator, model, optimizer, loader, criterion):
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = criterion(model(x), y)
        accelerator.backward(loss)  # expect: zero-grad-missing
        optimizer.step()


# What is right: any place on every path from one step to the next backward.


def after_the_step(model, loader, criterion, optimizer):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def between_forward_and_backward(loader, criterion, net: Net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_the_model(loader, criterion):
    net = nn.DataParallel(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        net.module.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()


def by_compiled_model(loader, criterion):
    net = torch.compile(Net())
    wrapped = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(wrapped.module.head.parameters())
    for x, y in loader:
        criterion(wrapped(x), y).backward()
        optimizer.step()
        wrapped.zero_grad(set_to_none=True)


def parameter_by_parameter(loader, criterion, net: Net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        for parameter in net.parameters():
            parameter.grad = None
        criterion(net(x), y).backward()
        optimizer.step()


def in_place(loader, criterion, net: Net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        for parameter in net.parameters():
            if parameter.grad is not None:
                parameter.grad.detach_()
                parameter.grad.zero_()
        criterion(net(x), y).backward()
        optimizer.step()


def accumulating(model, loader, criterion, optimizer, every: int):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / every
        loss.backward()
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def accumulating_accelerated(accelerator, model, loader, criterion, optimizer):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def with_closure(model, loader, criterion):
    optimizer = torch.optim.LBFGS(model.parameters())
    for x, y in loader:

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def sharpness_aware(model, loader, criterion, sam_optimizer):
    for x, y in loader:
        criterion(model(x), y).backward()
        sam_optimizer.first_step(zero_grad=True)
        criterion(model(x), y).backward()
        sam_optimizer.second_step(zero_grad=True)


class Wrapper:
    def __init__(self, optimizer) -> None:
        self.optimizer = optimizer

    def update_params(self, loss) -> None:
        self._clear()
        loss.backward()
        self.optimizer.step()

    def _clear(self) -> None:
        self.optimizer.zero_grad()


def through_a_wrapper(model: Net, loader, criterion):
    wrapper = Wrapper(torch.optim.Adam(model.parameters()))
    for x, y in loader:
        wrapper.update_params(criterion(model(x), y))


def by_an_engine_nobody_sees(model, loader, criterion, engine):
    for x, y in loader:
        loss = criterion(model(x), y)
        engine.backward(loss)
        engine.step()


class Automatic(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def adversarial(generator, discriminator, loader):
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_d = torch.optim.Adam(discriminator.parameters())
    bce = nn.BCEWithLogitsLoss()
    for real in loader:
        fake = generator(torch.randn(real.size(0), 64))
        optimizer_d.zero_grad()
        bce(discriminator(fake.detach()), torch.zeros(1)).backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        bce(discriminator(fake), torch.ones(1)).backward()
        optimizer_g.step()


def by_hand(x, y, steps: int):
    w = torch.zeros(3, requires_grad=True)
    for _ in range(steps):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None


def by_hand_on_data(x, y, steps: int):
    w = torch.zeros(3, requires_grad=True)
    for _ in range(steps):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        w.data -= 0.1 * w.grad.data
        w.grad.data.zero_()


def fused_in_backward(model, loader, criterion):
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def step_and_clear(parameter) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step_and_clear)
    for x, y in loader:
        criterion(model(x), y).backward()


def without_grad_fields(net: Net, loader, criterion):
    parameters = list(net.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for x, y in loader:
        gradients = torch.autograd.grad(criterion(net(x), y), parameters)
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        optimizer.step()


def one_single_backward(net: Net, x, y):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    F.cross_entropy(net(x), y).backward()
    optimizer.step()


def a_new_optimizer_each_time(loader):
    for x, y in loader:
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def graph_replay(net: Net, loader, static_x, static_y):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        F.cross_entropy(net(static_x), static_y).backward()
        optimizer.step()
    for x, y in loader:
        static_x.copy_(x)
        static_y.copy_(y)
        graph.replay()


class CallbackRunner:
    """What happens after a step is looked up by name."""

    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.callbacks = {"after_step": [self.clear]}

    def clear(self):
        self.optimizer.zero_grad()

    def fire(self, name):
        for callback in self.callbacks.get(name, ()):
            callback()

    def epoch(self, loader):
        for x, y in loader:
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()
            self.fire("after_step")


# Lightning calls training_step again and again; with manual optimisation it clears nothing.


class Manual(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.manual_backward(loss)  # expect: zero-grad-missing
        opt.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class ManualPair(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.generator = nn.Linear(4, 2)
        self.discriminator = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        x, y = batch
        fake = self.generator(y)
        d_loss = self.discriminator(x).mean() - self.discriminator(fake.detach()).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        g_loss = self.discriminator(fake).mean()
        self.manual_backward(g_loss)  # expect: zero-grad-missing
        g_opt.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.discriminator.parameters())


class ManualAndRight(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        opt.zero_grad()
        self.manual_backward(loss)
        opt.step()


class ManualAccumulation(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        x, y = batch
        loss = F.cross_entropy(self.net(x), y) / 4
        self.manual_backward(loss)
        if (batch_idx + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()


class ManualByProperty(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    @property
    def automatic_optimization(self):
        return False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.manual_backward(loss)  # expect: zero-grad-missing
        opt.step()


class ClearedInAHook(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.manual_backward(loss)
        opt.step()

    def on_train_batch_start(self, batch, batch_idx):
        self.optimizers().zero_grad()


class ManualMicroBatches(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers(use_pl_optimizer=True)
        for micro in batch:
            loss = self._loss(micro)
            loss.backward()   # expect: zero-grad-missing
            opt.step()

    def _loss(self, b):
        return F.cross_entropy(self.net(b[0]), b[1])


class Toggles(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        self.toggle_optimizer(opt)
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.manual_backward(loss)   # expect: zero-grad-missing
        opt.step()
        self.untoggle_optimizer(opt)
        sch = self.lr_schedulers()
        sch.step()

class ClearedAfterwards(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.manual_backward(loss)
        opt.step()
        self.zero_grad()


def losses_are_shown(model, loader, optimizer, running_mean):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: zero-grad-missing
        running_mean.update(loss.detach())
        optimizer.step()


def losses_are_handed_on(model, loader, optimizer, engine):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        engine.after(loss)
        optimizer.step()


class SoftActorCritic:
    """One training step of three optimizers: one of them is forgotten."""

    def __init__(self, actor, critic, lr):
        self.actor, self.critic = actor, critic
        self.actor_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)
        self.critic_optimizer = torch.optim.Adam(critic.parameters(), lr=lr)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=lr)

    def update(self, observation, action, target):
        critic_loss = F.mse_loss(self.critic(observation, action), target)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        action, log_probability = self.actor(observation)
        actor_loss = (log_probability - self.critic(observation, action)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        alpha_loss = -(self.log_alpha * log_probability.detach()).mean()
        alpha_loss.backward()  # expect: zero-grad-missing
        self.alpha_optimizer.step()


def one_of_a_pair(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer):
    """The loss starts as a number, and is a tensor after the loop."""
    encoder_optimizer.zero_grad()
    loss = 0
    state = encoder(source)
    for token in target:
        loss += F.nll_loss(decoder(token, state), token)
    loss.backward()  # expect: zero-grad-missing
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


def all_pairs(pairs, encoder, decoder):
    encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
    decoder_optimizer = torch.optim.SGD(decoder.parameters(), lr=0.01)
    for source, target in pairs:
        one_of_a_pair(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer)


def clears_only_if_asked(model, optimizer, other, x, y, clear=True):
    """Whoever says ``clear=False`` adds up on purpose."""
    other.zero_grad()
    if clear:
        optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    other.step()


def two_phases(model, first, second, x, y):
    """The caller clears both."""
    F.cross_entropy(model(x), y).backward()
    first.step()
    second.step()


def optimizer_told_of_the_passes(model, optimizer, loader, passes):
    """No optimizer of torch takes such an argument: this one may clear gradients itself."""
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step(n_steps=passes)


def optimizer_with_methods_of_its_own(model, optimizer, loader, is_fused):
    for x, y in loader:
        if is_fused:
            optimizer.prepare_next_pass()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def torchs_own_all_the_same(model, loader, is_fused):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=is_fused)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # expect: zero-grad-missing
        optimizer.step(closure=None)


def unknown_but_ordinary(model, optimizer, loader, path):
    optimizer.load_state_dict(torch.load(path))
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # expect: zero-grad-missing
        optimizer.step()


def clear_by_count(model, optimizer, loader, every):
    taken = 0
    for x, y in loader:
        if taken == 0:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        taken += 1
        if taken < every:
            continue
        optimizer.step()
        taken = 0


def clear_once(model, optimizer, loader):
    taken = 0
    for x, y in loader:
        if taken == 0:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()  # expect: zero-grad-missing
        optimizer.step()
        taken += 1


def taking_turns(model, loader, optimizer, k):
    """Whatever is cleared on the lap after a step is clean: only arithmetic tells."""
    for i, (x, y) in enumerate(loader):
        if i % k == 0:
            optimizer.zero_grad()
        (F.cross_entropy(model(x), y) / k).backward()
        if (i + 1) % k == 0:
            optimizer.step()


def taking_turns_if_asked(model, loader, optimizer, args):
    for i, (x, y) in enumerate(loader):
        if args.accumulate > 1:
            if i % args.accumulate == 0:
                optimizer.zero_grad()
        else:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if args.accumulate > 1:
            (loss / args.accumulate).backward()
            if (i + 1) % args.accumulate == 0:
                optimizer.step()
        else:
            loss.backward()
            optimizer.step()


def counted(model, loader, optimizer, k):
    micro = 0
    for x, y in loader:
        if micro == 0:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        micro += 1
        if micro < k:
            continue
        optimizer.step()
        micro = 0


def flagged(model, loader, optimizer, k):
    fresh = True
    for i, (x, y) in enumerate(loader):
        if fresh:
            optimizer.zero_grad()
            fresh = False
        F.cross_entropy(model(x), y).backward()
        if (i + 1) % k == 0:
            optimizer.step()
            fresh = True


def cleared_now_and_then(model, loader, optimizer, every):
    for i, (x, y) in enumerate(loader):
        if i % every == 0:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            continue
        loss.backward()  # expect: zero-grad-missing
        optimizer.step()


def auxiliary_phase(agent, optimizer, batches, others, k):
    """The first auxiliary step adds to the gradients of the last policy step."""
    for _ in range(10):
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(agent(x), y).backward()
            optimizer.step()
        for i, (x, y) in enumerate(others):
            (F.mse_loss(agent(x), y) / k).backward()  # expect: zero-grad-missing
            if (i + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()


def private(train_loader, epochs):
    from opacus import PrivacyEngine

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine = PrivacyEngine()
    model, optimizer, train_loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=train_loader, noise_multiplier=1.0
    )
    for epoch in range(epochs):
        for x, y in train_loader:
            F.cross_entropy(model(x), y).backward()  # expect: zero-grad-missing
            optimizer.step()


def optimizers_of_a_comprehension(loader, g, d):
    of_g, of_d = (torch.optim.Adam(network.parameters(), 2e-4) for network in (g, d))
    for x, _ in loader:
        fake = g(torch.randn(len(x), 8))
        of_d.zero_grad()
        (F.softplus(-d(x)).mean() + F.softplus(d(fake.detach())).mean()).backward()
        of_d.step()
        F.softplus(-d(fake)).mean().backward()  # expect: zero-grad-missing
        of_g.step()


def optimizers_in_a_dict(loader, g, d):
    networks = {"g": g, "d": d}
    optimizers = {
        name: torch.optim.Adam(network.parameters()) for name, network in networks.items()
    }
    for x, _ in loader:
        fake = networks["g"](torch.randn(len(x), 8))
        real_or_not = F.softplus(-d(x)).mean() + F.softplus(d(fake.detach())).mean()
        real_or_not.backward()  # expect: zero-grad-missing
        optimizers["d"].step()
        optimizers["g"].zero_grad()
        F.softplus(-networks["d"](fake)).mean().backward()
        optimizers["g"].step()


def optimizers_in_a_dict_cleared(loader, g, d):
    networks = {"g": g, "d": d}
    optimizers = {
        name: torch.optim.Adam(network.parameters()) for name, network in networks.items()
    }
    for x, _ in loader:
        for optimizer in optimizers.values():
            optimizer.zero_grad()
        fake = networks["g"](torch.randn(len(x), 8))
        (F.softplus(-d(x)).mean() + F.softplus(d(fake.detach())).mean()).backward()
        optimizers["d"].step()
        optimizers["g"].zero_grad()
        F.softplus(-networks["d"](fake)).mean().backward()
        optimizers["g"].step()
