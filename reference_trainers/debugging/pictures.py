"""See inside a network: activations, gradients, update sizes, under three initialisations.

When to use    Training does not start, is slower than it should be, or a layer seems dead. Copy
               measure() and draw() into your trainer and look at the first and the last step.
Source         He et al. 2015 (arXiv:1502.01852) for the Kaiming initialisation; Nguyen and Salazar
               2019 (arXiv:1910.05895), section 2.2, for "small", as GPT-NeoX uses it; Zhang et al.
               2019, Fixup (arXiv:1901.09321), for residual branches that start at zero. The
               pictures are those of Karpathy's lectures on building a network layer by layer.
What to see    Activations: every layer about as wide as the one before; heaps at -1 and 1 are
               saturated units, which pass no gradient; a needle at 0 has lost the input. Gradients:
               the same width in all layers; shrinking towards the input they vanish, growing they
               explode. Updates: about a thousandth of the weights a step, the dashed line at -3.
Expected       A network that predicts the next character of Python's own documentation, three
               times from the same batches, 1 core: the best below 2.4 nats after about 30 s, and
               start.png and end.png in --out. --batch-norm, and the three hardly differ any more.
Full scale     The same on any text: --data book.txt --width 1024 --steps 20000 --device cuda.
"""

import argparse
import csv
import math
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, Literal, get_args

import matplotlib
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

matplotlib.use("Agg")  # draws into files, needs no screen
from matplotlib import pyplot as plt

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # a text file; empty: the documentation that Python carries along
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    steps: int = 1500
    seed: int = 0
    out: str = ""  # where pictures, checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    batch_size: int = 64
    context: int = 8  # characters to predict the next one from
    embedding: int = 10
    width: int = 100
    depth: int = 5
    batch_norm: bool = False  # it repairs bad initialisations, and so would hide them here
    lr: float = 0.1  # the usual start for SGD; for Adam 1e-3
    checkpoint_every: int = 200
    keep: int = 2  # newest checkpoints to keep


def read_settings() -> Settings:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            parser.add_argument(
                flag,
                type=type(field.default),
                default=field.default,
                choices=get_args(field.type) or None,
            )
    return Settings(**vars(parser.parse_args()))


# ---- model --------------------------------------------------------------------------------------

INITS = ("kaiming", "small", "zero_residual")


class Layer(nn.Module):
    """Linear, perhaps batch norm, tanh; with `residual` around it, and a second matrix behind."""

    def __init__(self, inputs: int, width: int, residual: bool, batch_norm: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width, bias=not batch_norm)  # batch norm has its own shift
        self.norm = nn.BatchNorm1d(width) if batch_norm else nn.Identity()
        self.back = nn.Linear(width, width) if residual else None
        self.activation = torch.empty(0)  # of the latest forward pass, for measure()

    def forward(self, x: Tensor) -> Tensor:
        self.activation = torch.tanh(self.norm(self.linear(x)))
        if self.back is None:
            return self.activation
        out: Tensor = x + self.back(self.activation)
        return out


class Network(nn.Module):
    def __init__(self, init: str, vocabulary: int, settings: Settings) -> None:
        super().__init__()
        width, residual = settings.width, init == "zero_residual"
        self.embed = nn.Embedding(vocabulary, settings.embedding)
        layers = [Layer(settings.embedding * settings.context, width, False, settings.batch_norm)]
        for _ in range(settings.depth - 1):
            layers.append(Layer(width, width, residual, settings.batch_norm))
        self.layers = nn.ModuleList(layers)
        self.head = nn.Linear(width, vocabulary)

        for module in self.modules():
            if isinstance(module, nn.Linear):
                fan_in = module.in_features
                # A sum of d products of unit normal numbers has a standard deviation of sqrt(d):
                # 1 / sqrt(d) makes up for it, and the gain for what the activation then takes away
                # (5/3 for tanh, sqrt(2) for ReLU, which drops one half).
                std = nn.init.calculate_gain("tanh") / math.sqrt(fan_in)
                if init == "small":
                    std = math.sqrt(2 / (5 * fan_in))
                nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for layer in layers:
            if layer.back is not None:
                # The branch ends in zeros and the layer starts as the identity. Only this last
                # matrix: were the one before it zero as well, neither would ever get a gradient.
                nn.init.zeros_(layer.back.weight)
        # Small logits: the first loss is that of a fair guess, ln(vocabulary), and the first steps
        # are not spent on unlearning confident nonsense.
        with torch.no_grad():
            self.head.weight.mul_(0.1)

    def layers_in_order(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def forward(self, characters: Tensor) -> Tensor:
        x = self.embed(characters).flatten(1)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(x)
        return logits


# ---- pictures -----------------------------------------------------------------------------------


@dataclass
class Measured:
    """What one network looked like in one step, as histograms: (counts, edges) for each curve."""

    activations: dict[str, tuple[Tensor, Tensor]]
    activation_gradients: dict[str, tuple[Tensor, Tensor]]
    weight_gradients: dict[str, tuple[Tensor, Tensor]]


def histogram(values: Tensor) -> tuple[Tensor, Tensor]:
    values = values.detach().float().cpu().flatten()
    if not values.any():  # no width to divide into bins: draw() says so instead
        return torch.empty(0), torch.empty(1)
    counts, edges = torch.histogram(values, 60, density=True)
    return counts, edges


def measure(network: Network, init: str) -> Measured:
    """After backward() and before the step, while activations and gradients are still there."""
    measured = Measured({}, {}, {})
    print(f"\n{init}")
    for index, layer in enumerate(network.layers_in_order()):
        out, slope, weight = layer.activation, layer.activation.grad, layer.linear.weight
        assert slope is not None  # retain_grad() saw to it
        assert weight.grad is not None
        saturated = (out.abs() > 0.97).float().mean().item()
        ratio = weight.grad.std().item() / weight.std().item()
        print(
            f"  layer {index}: activation mean {out.mean().item():+.2f} std {out.std().item():.2f} "
            f"saturated {saturated:6.1%} | gradient std {slope.std().item():.1e} | "
            f"weight gradient : weight {ratio:.1e}"
        )
        measured.activations[f"layer {index}"] = histogram(out)
        measured.activation_gradients[f"layer {index}"] = histogram(slope)
        measured.weight_gradients[f"layer {index}"] = histogram(weight.grad)
    return measured


def draw(
    measured: dict[str, Measured], updates: dict[str, dict[str, list[float]]], path: Path
) -> None:
    """One row for each initialisation: activations, their gradients, weight gradients, updates."""
    figure, axes = plt.subplots(len(measured), 4, figsize=(20, 4 * len(measured)), squeeze=False)
    for row, (init, one) in zip(axes, measured.items(), strict=True):
        columns = {
            "activations": one.activations,
            "gradients of the activations": one.activation_gradients,
            "gradients of the weights": one.weight_gradients,
        }
        for axis, (title, curves) in zip(row[:3], columns.items(), strict=True):
            for name, (counts, edges) in curves.items():
                axis.plot(edges[:-1], counts, label=name if len(counts) else f"{name}: all zero")
            axis.set_title(f"{init}: {title}")
            axis.locator_params(axis="x", nbins=5)
            axis.legend()
        for name, ratios in updates[init].items():
            row[3].plot(ratios, label=name, marker="o" if len(ratios) == 1 else "")
        row[3].axhline(-3, color="black", linestyle="--")
        row[3].set_title(f"{init}: std(update) / std(weight), log10")
        row[3].legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


@torch.no_grad()
def evaluate(network: nn.Module, text: Tensor, context: int) -> float:
    """Loss in nats a character, over the first thousands of places of the validation text."""
    network.eval()
    windows = text[:8000].unfold(0, context + 1, 1)
    return F.cross_entropy(network(windows[:, :-1]), windows[:, -1]).item()


# ---- checkpoints: the same pattern in every trainer ---------------------------------------------


def get_random_state() -> dict[str, Any]:
    """Every stream that training may draw from, as plain values that `weights_only` can load."""
    name, keys, *rest = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (name, np.asarray(keys).tolist(), *rest),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available() and state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])


def save_atomically(state: dict[str, Any], path: Path) -> None:
    """Write beside the target, then rename: whoever looks sees the old file or the new one.

    A process killed while writing leaves a .partial file, which nothing ever reads. The data is
    forced to the disk before the rename, so that not even a power cut leaves half a checkpoint.
    """
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def save_step(state: dict[str, Any], out: Path, keep: int) -> None:
    """Save the checkpoint of this step, then remove all but the newest `keep`."""
    save_atomically(state, out / f"step_{state['step']:09d}.pt")
    for old in find_checkpoints(out)[:-keep]:
        old.unlink()


def find_checkpoints(out: Path) -> list[Path]:
    """Step checkpoints, oldest first; the step is zero-padded so that names sort like numbers."""
    return sorted(out.glob("step_*.pt"))


# ---- logs ---------------------------------------------------------------------------------------


def open_log(settings: Settings, out: Path) -> Callable[[int, dict[str, float]], None]:
    """A function that takes a step and its numbers. A resumed run appends to the same files."""
    if settings.log == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter  # an optional package: only when asked

        writer = SummaryWriter(str(out))

        def to_tensorboard(step: int, numbers: dict[str, float]) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, step)

        return to_tensorboard
    if settings.log == "csv":

        def to_csv(step: int, numbers: dict[str, float]) -> None:
            # Opened anew each time: what was logged survives a kill right after.
            with (out / "log.csv").open("a", newline="") as file:
                csv.writer(file).writerows((step, name, numbers[name]) for name in numbers)

        return to_csv
    return lambda _step, _numbers: None


# ---- training -----------------------------------------------------------------------------------


def main() -> None:
    settings = read_settings()
    started = time.perf_counter()
    device = torch.device(settings.device)
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)  # CUDA's streams too

    out = Path(settings.out or tempfile.mkdtemp(prefix="pictures-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    if settings.data:
        characters = Path(settings.data).read_text(encoding="utf-8")
    else:
        characters = "\n".join(topics.values())[:300_000]
    vocabulary = sorted(set(characters))
    number = {character: index for index, character in enumerate(vocabulary)}
    text = torch.tensor([number[character] for character in characters], device=device)
    split = int(0.9 * len(text))  # the end of the text, not random places: those overlap
    train_text, val_text = text[:split], text[split:]

    networks = {init: Network(init, len(vocabulary), settings).to(device) for init in INITS}
    together = nn.ModuleDict(networks)
    # One optimizer for all: SGD treats every weight on its own, and so do the three losses.
    optimizer = torch.optim.SGD(together.parameters(), lr=settings.lr)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(
        optimizer, [settings.steps * 3 // 4], gamma=0.1
    )
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    # For each network and layer, one number a step: log10 of std(update) / std(weight).
    updates: dict[str, dict[str, list[float]]] = {
        init: {f"layer {index}": [] for index in range(settings.depth)} for init in INITS
    }
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]
        state = torch.load(newest, map_location="cpu", weights_only=True)
        together.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        step = state["step"]
        updates = state["updates"]
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "updates": updates,
            "model": together.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "random": get_random_state(),  # the batches are drawn from it: no other position
            "settings": asdict(settings),
        }

    while step < settings.steps:
        together.train()
        starts = torch.randint(len(train_text) - settings.context, (settings.batch_size,))
        places = (starts[:, None] + torch.arange(settings.context + 1)).to(device)
        batch = train_text[places]
        inputs, targets = batch[:, :-1], batch[:, -1]
        picture = step in (0, settings.steps - 1)
        losses = {}
        for init, network in networks.items():
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                losses[init] = F.cross_entropy(network(inputs), targets)
            if picture:
                for layer in network.layers_in_order():
                    layer.activation.retain_grad()  # else only weights keep theirs
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(torch.stack(list(losses.values())).sum()).backward()
        scaler.unscale_(optimizer)  # the pictures show true gradients
        if picture:
            measured = {init: measure(network, init) for init, network in networks.items()}
        matrices = {
            (init, f"layer {index}"): layer.linear.weight
            for init, network in networks.items()
            for index, layer in enumerate(network.layers_in_order())
        }
        before = {place: matrix.detach().clone() for place, matrix in matrices.items()}
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:  # else the gradients overflowed: no step was taken
            scheduler.step()
        # What the step really did, momentum, decay and all; rate times gradient is right for plain
        # SGD alone. In a real run once in a hundred steps: it waits for the device.
        for (init, name), matrix in matrices.items():
            moved = (matrix.detach() - before[init, name]).std() / before[init, name].std()
            updates[init][name].append(moved.log10().item())
        step += 1
        if picture:
            draw(measured, updates, out / ("start.png" if step == 1 else "end.png"))

        if step % settings.log_every == 0:
            numbers = {f"train_loss_{init}": loss.item() for init, loss in losses.items()}
            log(step, numbers)
            shown = " ".join(f"{value:.3f}" for value in numbers.values())
            print(f"\rstep {step}/{settings.steps} loss {shown}", end="", flush=True)
        if step % settings.checkpoint_every == 0:
            save_step(snapshot(), out, settings.keep)

    save_step(snapshot(), out, settings.keep)
    val_losses = {
        init: evaluate(network, val_text, settings.context) for init, network in networks.items()
    }
    print()
    for init, loss in val_losses.items():
        print(f"{init + ':':<17} {loss:.4f}")
    print(f"best_val_loss:    {min(val_losses.values()):.4f}")
    print("target:           best_val_loss <= 2.4")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"pictures:         {out / 'start.png'} {out / 'end.png'}")


if __name__ == "__main__":
    main()
