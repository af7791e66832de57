"""LARS and LAMB: optimizers for batches so large that one learning rate no longer fits all layers.

When to use    Batches of several thousand (self-supervised pretraining, many GPUs), once the linear
               scaling rule with warm-up stops working. Below that: SGD or AdamW, they are better.
Source         You et al. 2017, LARS (arXiv:1708.03888): each layer's step is a fixed share of its
               weights' norm. You et al. 2019, LAMB (arXiv:1904.00962), algorithm 2: the same
               around Adam. Goyal et al. 2017 (arXiv:1706.02677): rate in proportion to the batch,
               warmed up. SimCLR (arXiv:2002.05709), section 2.2: LARS at batch 4096, square-root
               scaling for the smaller ones (appendix B.1). Norms and biases are left alone by both
               the adaptation and the decay, as in SimCLR and BYOL.
Expected       scikit-learn's 8x8 digits, half of the training set in each batch, 1 core: over 93 %
               validation accuracy after 80 steps, in about 20 s; --optimizer lamb, too.
Full scale     SimCLR: --optimizer lars, 0.3 x batch / 256, weight decay 1e-6, trust 0.001, ten
               epochs of warm-up. BERT in 76 minutes: --optimizer lamb --weight-decay 0.01 --scaling
               sqrt. Copy the class into your trainer.
"""

import argparse
import csv
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train/ and val/; empty: scikit-learn's digits
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 40
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 5
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 700  # of 1437
    optimizer: Literal["lars", "lamb", "sgd"] = "lars"
    base_lr: float = 0.0  # for a batch of 256; 0: what suits the optimizer (see BASE_LR)
    scaling: Literal["linear", "sqrt"] = "linear"
    warmup: float = 0.1  # share of the run; grows with the batch like the rate does
    momentum: float = 0.9
    trust: float = 0.005  # LARS: a step's share of the weights; 0.001 for long runs
    weight_decay: float = 1e-4
    checkpoint_every: int = 100  # steps, not epochs: an epoch of a real run takes hours
    keep: int = 2  # newest checkpoints to keep, besides the best


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


# For a batch of 256. LARS's is SimCLR's; it gets multiplied by the trust coefficient.
BASE_LR = {"lars": 0.3, "lamb": 0.01, "sgd": 0.1}


# ---- optimizers ---------------------------------------------------------------------------------


class LARS(torch.optim.Optimizer):
    """SGD with momentum in which every layer's step is `trust` times the norm of its weights.

    With one rate for all, the layer with the largest gradients relative to its weights decides how
    large the rate may be. Groups with `adapt` off (norms, biases) get plain SGD.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        super().__init__(groups, {**defaults, "adapt": True})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                update = weight.grad.add(weight, alpha=group["weight_decay"])
                if group["adapt"]:
                    size, slope = weight.norm(), update.norm()
                    # A weight or a gradient of zero tells nothing about the right size: then 1.
                    known = (size > 0) & (slope > 0)
                    update = update * torch.where(known, group["trust"] * size / slope, 1.0)
                state = self.state[weight]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(weight)
                # The rate is inside the average, as in the paper (algorithm 1): when it changes,
                # steps already under way keep the size they were given.
                state["momentum"].mul_(group["momentum"]).add_(update * group["lr"])
                weight.sub_(state["momentum"])
        return loss


class LAMB(torch.optim.Optimizer):
    """Adam in which every layer's step has the norm of its weights, times the learning rate."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(groups, {**defaults, "adapt": True})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "step" not in state:
                    state["step"] = 0
                    state["mean"] = torch.zeros_like(weight)
                    state["square"] = torch.zeros_like(weight)
                state["step"] += 1
                state["mean"].lerp_(weight.grad, 1 - beta1)
                state["square"].mul_(beta2).addcmul_(weight.grad, weight.grad, value=1 - beta2)
                mean = state["mean"] / (1 - beta1 ** state["step"])
                square = state["square"] / (1 - beta2 ** state["step"])
                update = mean / (square.sqrt() + group["eps"]) + group["weight_decay"] * weight
                ratio = torch.ones((), device=weight.device)
                if group["adapt"]:
                    size, slope = weight.norm(), update.norm()
                    ratio = torch.where((size > 0) & (slope > 0), size / slope, ratio)
                weight.sub_(group["lr"] * ratio * update)
        return loss


# ---- data ---------------------------------------------------------------------------------------


class Samples(Protocol):
    """What a training set has to offer: a length, and a picture with its class by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> tuple[Any, int]: ...


class Augmented(Dataset[tuple[Tensor, int]]):
    """A random transform over `samples` whose outcome depends only on the seed sent with an index.

    The transforms of torchvision draw from torch's global stream. If they drew from a worker's
    own stream, a resumed run, or one with another number of workers, would see other pictures.
    """

    def __init__(self, samples: Samples, transform: Callable[[Any], Tensor]) -> None:
        self.samples = samples
        self.transform = transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, int]:
        index, seed = key
        picture, label = self.samples[index]
        with torch.random.fork_rng(devices=[]):  # the caller's stream stays as it was
            torch.default_generator.manual_seed(seed)  # the CPU's alone: 30 times faster
            return self.transform(picture), label


class ResumableSampler(Sampler[tuple[int, int]]):
    """A shuffled order that follows from (seed, epoch) and can start inside an epoch.

    `position` counts samples that were trained on. The training loop moves it, not the iterator:
    a loader with workers reads ahead of what was trained on.
    """

    def __init__(self, samples: Sized, seed: int) -> None:
        self.length = len(samples)
        self.seed = seed
        self.epoch = 0
        self.position = 0

    def __len__(self) -> int:
        return self.length - self.position

    def __iter__(self) -> Iterator[tuple[int, int]]:
        stream = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.length, generator=stream)[self.position :]
        seeds = torch.randint(2**62, (self.length,), generator=stream)[self.position :]
        yield from zip(order.tolist(), seeds.tolist(), strict=True)

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed = state["seed"]
        self.epoch = state["epoch"]
        self.position = state["position"]


def load_data(settings: Settings) -> tuple[Augmented, Dataset[Any], int]:
    """The training set, the validation set (never augmented) and the number of classes."""
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), normalize]
        augment = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *to_float])
        center = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *to_float])
        train_folder = ImageFolder(os.path.join(settings.data, "train"))
        val_folder = ImageFolder(os.path.join(settings.data, "val"), transform=center)
        return Augmented(train_folder, augment), val_folder, len(train_folder.classes)

    digits = load_digits()
    pixels = torch.from_numpy(digits.images).mul(255 / 16).to(torch.uint8).unsqueeze(1)
    labels = torch.from_numpy(digits.target)
    # One fixed split for every seed, with every class in its share on both sides.
    train, val = train_test_split(
        np.arange(len(labels)), test_size=0.2, random_state=0, stratify=digits.target
    )
    # Mean and spread come from the training part only: validation data must not leak into training.
    scale = v2.ToDtype(torch.float32, scale=True)
    train_pixels = scale(pixels[train])
    normalize = v2.Normalize(mean=[train_pixels.mean().item()], std=[train_pixels.std().item()])
    # A shift by one pixel keeps a digit what it is. A mirror would not, so no flip here.
    augment = v2.Compose([v2.RandomCrop(8, padding=1), scale, normalize])
    samples = list(zip(pixels[train], labels[train].tolist(), strict=True))
    return (
        Augmented(samples, augment),
        TensorDataset(normalize(scale(pixels[val])), labels[val]),
        10,
    )


# ---- model --------------------------------------------------------------------------------------


def build_model(settings: Settings, classes: int) -> nn.Module:
    """ResNet-50 for pictures on disk; for the digits, where the point is the optimizer, an MLP."""
    if settings.data:
        full: nn.Module = resnet50(weights=None, num_classes=classes, zero_init_residual=True)
        return full
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 128, bias=False),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 128, bias=False),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DataLoader[Any], device: torch.device
) -> tuple[float, float]:
    """Loss and accuracy over all samples: sums divided once, so a short last batch weighs right."""
    model.eval()
    loss = torch.zeros((), device=device)
    correct = torch.zeros((), device=device)
    count = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss += F.cross_entropy(logits, labels, reduction="sum")
        correct += (logits.argmax(dim=1) == labels).sum()
        count += len(labels)
    return loss.item() / count, correct.item() / count


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="large-batch-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_set, val_set, classes = load_data(settings)
    sampler = ResumableSampler(train_set, settings.seed)
    train_loader = DataLoader(
        train_set,
        batch_size=settings.batch_size,
        sampler=sampler,
        drop_last=True,  # a tiny last batch would feed batch norm bad statistics
        num_workers=settings.workers,
        persistent_workers=settings.workers > 0,  # else they start anew at every epoch
        prefetch_factor=2 if settings.workers > 0 else None,
        pin_memory=device.type == "cuda",  # makes the copy to the device asynchronous
        generator=torch.Generator(),  # its own: starting an epoch must not move the global stream
    )
    val_loader = DataLoader(
        val_set,
        batch_size=settings.batch_size,
        num_workers=settings.workers,
        persistent_workers=settings.workers > 0,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    total_steps = settings.steps or settings.epochs * (len(train_set) // settings.batch_size)

    # The model goes to its device first: the optimizer keeps references to the parameters.
    model = build_model(settings, classes).to(device)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [
        {"params": weights},
        {"params": others, "weight_decay": 0.0, "adapt": False},
    ]
    # k times the batch: k times the rate, since one step replaces k steps (Goyal et al.); or only
    # the root of k, which keeps the noise of a step the same and is the safer of the two for kin of
    # Adam (Krizhevsky 2014, arXiv:1404.5997). Both fail in the first steps: hence the warm-up.
    k = settings.batch_size / 256
    factor = k if settings.scaling == "linear" else math.sqrt(k)
    lr = (settings.base_lr or BASE_LR[settings.optimizer]) * factor
    optimizer: torch.optim.Optimizer
    if settings.optimizer == "lars":
        optimizer = LARS(groups, lr, settings.momentum, settings.weight_decay, trust=settings.trust)
    elif settings.optimizer == "lamb":
        optimizer = LAMB(groups, lr, weight_decay=settings.weight_decay)
    else:  # for comparison
        optimizer = torch.optim.SGD(
            groups, lr, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
    warmup_steps = round(settings.warmup * total_steps)

    def rate(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * progress))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    best_accuracy = 0.0
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]
        state = torch.load(newest, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        sampler.load_state_dict(state["sampler"])
        step = state["step"]
        best_accuracy = state["best_accuracy"]
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "best_accuracy": best_accuracy,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "sampler": sampler.state_dict(),
            "random": get_random_state(),
            "settings": asdict(settings),
        }

    while step < total_steps:
        model.train()
        for images, labels in train_loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= scale:  # else the gradients overflowed: no step was taken
                scheduler.step()
            step += 1
            sampler.position += settings.batch_size

            if step % settings.log_every == 0:  # reading the loss waits for the device
                log(step, {"train_loss": loss.item(), "lr": optimizer.param_groups[0]["lr"]})
                print(f"\rstep {step}/{total_steps} loss {loss.item():.4f}", end="", flush=True)
            # The last step is saved below, once evaluated: a run resumed here would skip that.
            if step % settings.checkpoint_every == 0 and step < total_steps:
                save_step(snapshot(), out, settings.keep)
            if step == total_steps:
                break
        else:  # the epoch ran to its end
            sampler.epoch += 1
            sampler.position = 0
        val_loss, val_accuracy = evaluate(model, val_loader, device)
        log(step, {"val_loss": val_loss, "val_accuracy": val_accuracy})
        if val_accuracy > best_accuracy:
            best_accuracy = val_accuracy
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_loss, val_accuracy = evaluate(model, val_loader, device)
    print(f"\nval_accuracy:     {val_accuracy:.4f}")
    print(f"val_loss:         {val_loss:.4f}")
    print("target:           val_accuracy >= 0.93")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
