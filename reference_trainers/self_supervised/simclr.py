"""SimCLR: learn features without labels, by telling the views of one picture from all others.

When to use    Many pictures, few labels, and room for large batches: every other picture in the
               batch is a negative example, so the batch is the task's difficulty.
Source         Chen et al. 2020 (arXiv:2002.05709): NT-Xent loss (section 2.1), projection head that
               is thrown away afterwards (section 4.2), temperature 0.1 for ImageNet and 0.5 for
               CIFAR-10 (appendix B), batch 4096 with LARS, 0.3 x batch / 256, weight decay 1e-6.
Expected       scikit-learn's 8x8 digits, 1 core: above 88 % with 10 labels a class in under 60 s.
               The summary also shows what raw pixels and the untrained network reach.
Full scale     --data /imagenet --device cuda --amp --epochs 100 --batch-size 4096
               --temperature 0.1 --projection 128 --labels 13 --workers 16 --checkpoint-every 500,
               and the LARS class of large_batch.py in place of AdamW, which is for small batches.
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
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
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
    epochs: int = 12
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 128
    lr: float = 2e-3
    weight_decay: float = 1e-4
    warmup: float = 0.1  # share of the run
    temperature: float = 0.5
    projection: int = 32  # length of the vectors that are compared
    labels: int = 10  # a class, for the probe
    checkpoint_every: int = 100
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


# ---- data ---------------------------------------------------------------------------------------


class Samples(Protocol):
    """What a training set has to offer: a length, and a picture with its class by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> tuple[Any, int]: ...


class TwoViews(Dataset[tuple[Tensor, Tensor]]):
    """Two random views of a picture that depend only on the seed sent with its index. No labels.

    The transforms of torchvision draw from torch's global stream. If they drew from a worker's
    own stream, a resumed run, or one with another number of workers, would see other pictures.
    """

    def __init__(self, samples: Samples, transform: Callable[[Any], Tensor]) -> None:
        self.samples = samples
        self.transform = transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, Tensor]:
        index, seed = key
        picture, _ = self.samples[index]
        with torch.random.fork_rng(devices=[]):  # the caller's stream stays as it was
            torch.default_generator.manual_seed(seed)  # the CPU's alone: 30 times faster
            return self.transform(picture), self.transform(picture)


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


@dataclass
class Data:
    train: TwoViews  # no labels: what the encoder learns from
    plain: Dataset[Any]  # the same pictures, not augmented, with labels: only the probe sees them
    val: Dataset[Any]


def load_data(settings: Settings) -> Data:
    scale = v2.ToDtype(torch.float32, scale=True)
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        # Cropping and colour together make the task: from colour alone two crops of one picture
        # would give themselves away (SimCLR, section 3.1 and appendix A).
        color = v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
        blur = v2.RandomApply([v2.GaussianBlur(23)], p=0.5)
        crop = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()]
        rest = [v2.ToImage(), scale, normalize]
        view = v2.Compose([*crop, color, v2.RandomGrayscale(0.2), blur, *rest])
        center = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *rest])
        train_folder = os.path.join(settings.data, "train")
        return Data(
            train=TwoViews(ImageFolder(train_folder), view),
            plain=ImageFolder(train_folder, transform=center),
            val=ImageFolder(os.path.join(settings.data, "val"), transform=center),
        )

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
    # What a digit must stay the same under: a shift, another size, a bit of noise. Not a mirror.
    crop = v2.RandomResizedCrop(8, scale=(0.5, 1.0), ratio=(0.8, 1.25))
    view = v2.Compose([crop, scale, v2.GaussianNoise(sigma=0.1), normalize])
    samples = list(zip(pixels[train], labels[train].tolist(), strict=True))
    return Data(
        train=TwoViews(samples, view),
        plain=TensorDataset(normalize(scale(pixels[train])), labels[train]),
        val=TensorDataset(normalize(scale(pixels[val])), labels[val]),
    )


# ---- model --------------------------------------------------------------------------------------


def build_encoder(settings: Settings) -> tuple[nn.Module, int]:
    """A network that ends in a feature vector, and how long that vector is."""
    if settings.data:
        full: nn.Module = resnet50(weights=None, zero_init_residual=True)
        full.fc = nn.Identity()
        return full, 2048

    def shrink(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride=2, bias=False), nn.BatchNorm2d(outputs)
        )

    small = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        BasicBlock(16, 32, stride=2, downsample=shrink(16, 32)),
        BasicBlock(32, 64, stride=2, downsample=shrink(32, 64)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    return small, 64


class Model(nn.Module):
    """The encoder, which is kept, and the projection head, which serves the loss alone.

    The loss rewards forgetting whatever tells two views apart, colour and position included. The
    head takes that damage; the features below it stay rich (section 4.2: 10 points and more).
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.encoder, width = build_encoder(settings)
        self.head = nn.Sequential(
            nn.Linear(width, width, bias=False),  # the norm's own shift does the work of a bias
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, settings.projection),
        )

    def forward(self, images: Tensor) -> Tensor:
        projected: Tensor = self.head(self.encoder(images))
        return projected


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Normalised, temperature-scaled cross entropy: which of the 2B - 1 others is my twin?

    Computed in float32 whatever autocast is doing: differences between similarities are small, and
    dividing by the temperature stretches what half precision left of them.
    """
    with torch.autocast(first.device.type, enabled=False):
        both = F.normalize(torch.cat([first, second]).float(), dim=1)
        similarity = both @ both.T / temperature
        # Nobody is its own twin. Minus infinity is exact in every precision, where a constant such
        # as -1e9 does not exist in float16; no row consists of it alone, so there is no 0 / 0.
        itself = torch.eye(len(both), dtype=torch.bool, device=both.device)
        similarity = similarity.masked_fill(itself, float("-inf"))
        count = len(first)
        twins = torch.arange(2 * count, device=both.device).roll(count)  # i + B, then i - B
        return F.cross_entropy(similarity, twins)


@torch.no_grad()
def features_of(
    encoder: nn.Module, data: Dataset[Any], settings: Settings
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Features and labels, in eval mode: batch norm must not look at the batch it is given."""
    encoder.eval()
    loader = DataLoader(
        data,
        batch_size=settings.batch_size,
        num_workers=settings.workers,
        generator=torch.Generator(),  # its own: it must not move the global stream
    )
    features, labels = [], []
    for images, targets in loader:
        features.append(encoder(images.to(settings.device)).float().cpu())
        labels.append(targets)
    return torch.cat(features).numpy(), torch.cat(labels).numpy()


def linear_probe(encoder: nn.Module, data: Data, settings: Settings) -> float:
    """Accuracy of a linear classifier on frozen features, fitted on a few labels of each class.

    The standard question to self-supervised features: how few labels make a good classifier? With
    all labels even the features of an untrained network separate the digits well.
    """
    x, y = features_of(encoder, data.plain, settings)
    mean, std = x.mean(axis=0), x.std(axis=0) + 1e-6  # of the training features alone
    few = np.concatenate([np.flatnonzero(y == label)[: settings.labels] for label in np.unique(y)])
    classifier = LogisticRegression(max_iter=1000).fit((x[few] - mean) / std, y[few])
    x_val, y_val = features_of(encoder, data.val, settings)
    return float(classifier.score((x_val - mean) / std, y_val))


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="simclr-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    data = load_data(settings)
    sampler = ResumableSampler(data.train, settings.seed)
    train_loader = DataLoader(
        data.train,
        batch_size=settings.batch_size,
        sampler=sampler,
        drop_last=True,  # a small last batch has few negatives and bad batch-norm statistics
        num_workers=settings.workers,
        persistent_workers=settings.workers > 0,  # else they start anew at every epoch
        prefetch_factor=2 if settings.workers > 0 else None,
        pin_memory=device.type == "cuda",  # makes the copy to the device asynchronous
        generator=torch.Generator(),  # its own: starting an epoch must not move the global stream
    )
    total_steps = settings.steps or settings.epochs * (len(data.train) // settings.batch_size)

    model = Model(settings).to(device)
    untrained = linear_probe(model.encoder, data, settings)
    pixels = linear_probe(nn.Flatten(), data, settings)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, weight_decay=settings.weight_decay)
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
        for first, second in train_loader:
            # Both views in one pass: batch norm then sees them as one batch, and cannot tell the
            # first views from the second by their statistics.
            views = torch.cat([first, second]).to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                one, other = model(views).chunk(2)
            loss = nt_xent(one, other, settings.temperature)
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
        # The loss cannot tell whether the features are useful. A few labels can.
        accuracy = linear_probe(model.encoder, data, settings)
        log(step, {"probe_accuracy": accuracy})
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    # What is handed on: the encoder without the projection head.
    save_atomically(model.encoder.state_dict(), out / "encoder.pt")
    print(f"\nprobe_accuracy:   {linear_probe(model.encoder, data, settings):.4f}")
    print(f"untrained:        {untrained:.4f}")
    print(f"raw_pixels:       {pixels:.4f}")
    print("target:           probe_accuracy >= 0.88")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
