"""Progressive resizing: train on small pictures first, on large ones at the end.

When to use    Training from scratch costs too much. The cost of a convolutional network grows with
               the area of its pictures, and coarse features can be learned from coarse pictures.
Source         Howard 2018, fast.ai's entry to DAWNBench; Tan and Le 2021, EfficientNetV2
               (arXiv:2104.00298), section 4: larger pictures need stronger regularisation, so the
               augmentation grows along. Touvron et al. 2019 (arXiv:1906.06423): a random crop shows
               objects larger than the centre crop of a test, so testing at a larger size helps.
Expected       scikit-learn's digits, enlarged to 16x16, 1 core: above 96 % validation accuracy in
               under a minute, for 57 % of the pixels that 16x16 all along would have cost.
Full scale     --data /imagenet --device cuda --amp --epochs 100 --sizes 160 224 288
               --shares 0.6 0.3 0.1 --rates 1e-3 3e-4 1e-4 --batch-size 256 --workers 16
               --ema-decay 0.9999 --checkpoint-every 1000
"""

import argparse
import csv
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
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50
from torchvision.models.resnet import BasicBlock
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train/ and val/; empty: scikit-learn's digits
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 8
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 32
    # One value a phase. The rate falls from phase to phase: what the last phase has to learn is
    # fine detail, on top of features that must not be washed out by its first steps.
    sizes: tuple[float, ...] = (8, 12, 16)
    shares: tuple[float, ...] = (0.4, 0.3, 0.3)  # of the run
    rates: tuple[float, ...] = (3e-3, 2e-3, 1e-3)
    shifts: tuple[float, ...] = (0.06, 0.09, 0.12)  # how far a digit may move: grows with its size
    weight_decay: float = 0.05
    ema_decay: float = 0.95  # averages over 1 / (1 - decay) steps: a small part of one phase
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
        elif isinstance(field.default, tuple):
            parser.add_argument(flag, type=float, nargs="+", default=field.default)
        else:
            parser.add_argument(
                flag,
                type=type(field.default),
                default=field.default,
                choices=get_args(field.type) or None,
            )
    return Settings(**vars(parser.parse_args()))


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


def load_data(settings: Settings, phase: int) -> tuple[Augmented, Dataset[Any], int]:
    """The training set at the size of a phase, and the validation set at the size of the last.

    The network ends in an average over all places, so it takes any size. It is always judged on
    full-size pictures: accuracies of different phases can be compared.
    """
    size, full_size = int(settings.sizes[phase]), int(settings.sizes[-1])
    scale = v2.ToDtype(torch.float32, scale=True)
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        crop = [v2.RandomResizedCrop(size), v2.RandomHorizontalFlip()]
        augment = v2.Compose([*crop, v2.ToImage(), scale, normalize])
        middle = [v2.Resize(full_size * 8 // 7), v2.CenterCrop(full_size)]
        center = v2.Compose([*middle, v2.ToImage(), scale, normalize])
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
    train_pixels = scale(pixels[train])
    normalize = v2.Normalize(mean=[train_pixels.mean().item()], std=[train_pixels.std().item()])
    # Enlarged once, here; only the shift is random. No flip: a mirrored 2 is not a 2.
    shift = settings.shifts[phase]
    augment = v2.Compose([v2.RandomAffine(0, translate=(shift, shift)), scale, normalize])
    small = v2.functional.resize(pixels[train], [size, size])
    samples = list(zip(small, labels[train].tolist(), strict=True))
    full = v2.functional.resize(pixels[val], [full_size, full_size])
    return Augmented(samples, augment), TensorDataset(normalize(scale(full)), labels[val]), 10


# ---- model --------------------------------------------------------------------------------------


def build_model(settings: Settings, classes: int) -> nn.Module:
    """ResNet-50 for pictures on disk; for the digits eight layers from the same building blocks."""
    # zero_init_residual: the last norm of each block starts at zero, so that every block starts as
    # the identity and the early, large steps are safe (Goyal et al., section 5.1).
    if settings.data:
        full: nn.Module = resnet50(weights=None, num_classes=classes, zero_init_residual=True)
        return full

    def shrink(inputs: int, outputs: int) -> nn.Sequential:
        # No bias before a batch norm, whose own shift would cancel it.
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride=2, bias=False), nn.BatchNorm2d(outputs)
        )

    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        BasicBlock(16, 16),
        BasicBlock(16, 32, stride=2, downsample=shrink(16, 32)),
        BasicBlock(32, 64, stride=2, downsample=shrink(32, 64)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, classes),
    )
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            # Keeps the variance through a ReLU, which halves it (He et al. 2015, arXiv:1502.01852).
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if isinstance(module, BasicBlock):
            nn.init.zeros_(module.bn2.weight)
    return model


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="progressive-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_set, val_set, classes = load_data(settings, phase=0)
    sampler = ResumableSampler(train_set, settings.seed)
    val_loader = DataLoader(
        val_set,
        batch_size=settings.batch_size,
        num_workers=settings.workers,
        persistent_workers=settings.workers > 0,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    total_steps = settings.steps or settings.epochs * (len(train_set) // settings.batch_size)
    # The step at which each phase ends; the last one ends with the run, whatever the rounding.
    sums = [sum(settings.shares[: phase + 1]) for phase in range(len(settings.shares))]
    ends = [round(total_steps * total / sums[-1]) for total in sums]

    # The model goes to its device first: the optimizer keeps references to the parameters.
    model = build_model(settings, classes).to(device)
    # Decay only what multiplies (convolutions, linear layers), not norm scales and biases.
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1.0, weight_decay=settings.weight_decay)

    def phase_at(step: int) -> int:
        return min(sum(step >= end for end in ends), len(ends) - 1)

    # The optimizer's own rate is 1, so that the phase's rate is the rate.
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: settings.rates[phase_at(step)]
    )
    # The running average of the weights is what gets evaluated and shipped. Buffers too: batch-norm
    # statistics belong to the weights that they were measured with.
    ema = AveragedModel(
        model, multi_avg_fn=get_ema_multi_avg_fn(settings.ema_decay), use_buffers=True
    )
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
        ema.load_state_dict(state["ema"])
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
            "ema": ema.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "sampler": sampler.state_dict(),
            "random": get_random_state(),
            "settings": asdict(settings),
        }

    while step < total_steps:
        # A phase may begin in the middle of an epoch: the loader is made anew, at the next size,
        # and goes on where the sampler stands. Small pictures would allow a larger batch, too; it
        # stays, because batch norm and the learning rate depend on it.
        phase = phase_at(step)
        train_set, _, _ = load_data(settings, phase)
        train_loader = DataLoader(
            train_set,
            batch_size=settings.batch_size,
            sampler=sampler,
            drop_last=True,  # a tiny last batch would feed batch norm bad statistics
            num_workers=settings.workers,
            prefetch_factor=2 if settings.workers > 0 else None,
            pin_memory=device.type == "cuda",  # makes the copy to the device asynchronous
            generator=torch.Generator(),  # its own: it must not move the global stream
        )
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
                ema.update_parameters(model)
            step += 1
            sampler.position += settings.batch_size

            if step % settings.log_every == 0:  # reading the loss waits for the device
                log(step, {"train_loss": loss.item(), "lr": optimizer.param_groups[0]["lr"]})
                print(f"\rstep {step}/{total_steps} loss {loss.item():.4f}", end="", flush=True)
            # The last step is saved below, once evaluated: a run resumed here would skip that.
            if step % settings.checkpoint_every == 0 and step < total_steps:
                save_step(snapshot(), out, settings.keep)
            if step == ends[phase]:
                break
        else:  # the epoch ran to its end
            sampler.epoch += 1
            sampler.position = 0
        val_loss, val_accuracy = evaluate(ema, val_loader, device)
        log(
            step,
            {"val_loss": val_loss, "val_accuracy": val_accuracy, "size": settings.sizes[phase]},
        )
        if val_accuracy > best_accuracy:
            best_accuracy = val_accuracy
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_loss, val_accuracy = evaluate(ema, val_loader, device)
    _, raw_accuracy = evaluate(model, val_loader, device)
    print(f"\nval_accuracy:     {val_accuracy:.4f}")
    print(f"val_loss:         {val_loss:.4f}")
    print(f"without_ema:      {raw_accuracy:.4f}")
    print("target:           val_accuracy >= 0.96")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
