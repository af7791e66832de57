"""Overfitting and what helps: few pictures, augmentation, dropout, early stopping, test-time views.

When to use    Good on the training data, worse on new data. The summary names the larger of the two
               errors and what to try against it; each remedy is a flag, so that it can be measured.
Source         Ng, Machine Learning Yearning, chapters 20 to 27 (bias, variance, what to try next);
               Prechelt 1998 (early stopping); Srivastava et al. 2014 (dropout); Krizhevsky et al.
               2012, section 4.1 (averaging over crops and mirror images of a test picture).
Expected       400 of scikit-learn's 8x8 digits, 1 core: above 93 % on the test split in about 15 s.
Full scale     --data /photos --device cuda --amp --epochs 90 --batch-size 128 --train-share 1
               --workers 16 --checkpoint-every 1000 (a folder with train/, val/ and test/).
Compare        --no-augment, --dropout 0, --patience 1000, --train-share 1: one remedy less each, or
               the best of all, more data. The summary shows test-time augmentation by its mean, by
               vote, and without. With so few pictures one seed says little: compare several.
"""

import argparse
import copy
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
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 32
    train_share: float = 0.35  # of the training pictures; 1: all
    augment: bool = True
    dropout: float = 0.3
    weight_decay: float = 0.01
    lr: float = 2e-3
    patience: int = 10  # epochs without a better validation loss
    goal_error: float = 0.01  # what people, or the best known method, still get wrong
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


def load_data(settings: Settings) -> tuple[Augmented, list[Dataset[Any]], int]:
    """The augmented training set; training, validation and test pictures as they are; the classes.

    Early stopping chooses an epoch on the validation pictures, so they cannot judge it: that is
    what the test pictures are for, and they are looked at once, at the end.
    """
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), normalize]
        center = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *to_float])
        random_crop = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *to_float])
        folders = [os.path.join(settings.data, part) for part in ("train", "val", "test")]
        train_folder = ImageFolder(folders[0])
        plain: list[Dataset[Any]] = [ImageFolder(folder, transform=center) for folder in folders]
        transform = random_crop if settings.augment else center
        return Augmented(train_folder, transform), plain, len(train_folder.classes)

    digits = load_digits()
    pixels = torch.from_numpy(digits.images).mul(255 / 16).to(torch.uint8).unsqueeze(1)
    labels = torch.from_numpy(digits.target)
    # One fixed split for every seed, with every class in its share of each part.
    rest, test = train_test_split(
        np.arange(len(labels)), test_size=0.2, random_state=0, stratify=digits.target
    )
    train, val = train_test_split(rest, test_size=0.2, random_state=0, stratify=digits.target[rest])
    train = train[: round(len(train) * settings.train_share)]
    # Mean and spread come from the training part only: the other two must not leak into training.
    scale = v2.ToDtype(torch.float32, scale=True)
    train_pixels = scale(pixels[train])
    normalize = v2.Normalize(mean=[train_pixels.mean().item()], std=[train_pixels.std().item()])
    shift = [v2.RandomCrop(8, padding=1)] if settings.augment else []
    samples = list(zip(pixels[train], labels[train].tolist(), strict=True))
    parts = (train, val, test)
    plain = [TensorDataset(normalize(scale(pixels[part])), labels[part]) for part in parts]
    return Augmented(samples, v2.Compose([*shift, scale, normalize])), plain, 10


# ---- model --------------------------------------------------------------------------------------


def build_model(settings: Settings, classes: int) -> nn.Module:
    if settings.data:
        full: nn.Module = resnet50(weights=None, zero_init_residual=True)
        # Dropout before the last layer: the place where a classifier memorises.
        full.fc = nn.Sequential(nn.Dropout(settings.dropout), nn.Linear(2048, classes))
        return full
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),  # batch norm has its own shift
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(settings.dropout),
        nn.Linear(32 * 16, classes),
    )


def views(images: Tensor) -> list[Tensor]:
    """Nine pictures of each: as it is, and shifted by a pixel (an eighth) in every direction.

    The same changes that training saw, and only those that keep the label: no mirrored digits.
    """
    step = images.shape[-1] // 8
    padded = F.pad(images, (step, step, step, step), mode="replicate")
    size = images.shape[-1]
    starts = (step, 0, 2 * step)
    return [padded[..., top : top + size, left : left + size] for top in starts for left in starts]


@dataclass
class Score:
    loss: float
    accuracy: float
    mean_accuracy: float  # class probabilities averaged over the views
    vote_accuracy: float  # one vote for each view; ties go to the smaller class number


@torch.no_grad()
def evaluate(
    model: nn.Module, data: Dataset[Any], settings: Settings, test_time: bool = False
) -> Score:
    """Sums over all samples, divided once, so that a short last batch weighs what it should."""
    model.eval()
    device = torch.device(settings.device)
    loader = DataLoader(
        data,
        batch_size=settings.batch_size,
        num_workers=settings.workers,
        generator=torch.Generator(),  # its own: it must not move the global stream
    )
    loss, right, by_mean, by_vote, count = 0.0, 0, 0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss += F.cross_entropy(logits, labels, reduction="sum").item()
        right += int((logits.argmax(dim=1) == labels).sum())
        if test_time:
            # Probabilities are averaged, not logits: one view that is wrong and very sure of it
            # would outweigh eight that are right.
            each = torch.stack([F.softmax(model(view), dim=1) for view in views(images)])
            by_mean += int((each.mean(dim=0).argmax(dim=1) == labels).sum())
            by_vote += int((each.argmax(dim=2).mode(dim=0).values == labels).sum())
        count += len(labels)
    return Score(loss / count, right / count, by_mean / count, by_vote / count)


def what_next(train_error: float, val_error: float, goal_error: float) -> str:
    """Which of the two errors is the larger, and what is known to help against it.

    Bias is what is missing on the training data already; variance is what gets lost between the
    training and the validation data. What helps against one makes the other worse.
    """
    bias, variance = max(0.0, train_error - goal_error), max(0.0, val_error - train_error)
    if max(bias, variance) < 0.005:
        return "both small: collect harder validation data, or stop here"
    if bias > variance:
        return "high bias: more features, more parameters, less regularisation, longer training"
    return "high variance: more data, augmentation, fewer parameters, more regularisation"


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="generalisation-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_set, plain, classes = load_data(settings)
    plain_train, plain_val, plain_test = plain
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
    total_steps = settings.steps or settings.epochs * (len(train_set) // settings.batch_size)

    # The model goes to its device first: the optimizer keeps references to the parameters.
    model = build_model(settings, classes).to(device)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, weight_decay=settings.weight_decay)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps)
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    best_loss = float("inf")
    best_weights = copy.deepcopy(model.state_dict())
    waited = 0  # epochs since the best one
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]
        state = torch.load(newest, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        sampler.load_state_dict(state["sampler"])
        step = state["step"]
        best_loss = state["best_loss"]
        best_weights = state["best_weights"]
        waited = state["waited"]
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "best_loss": best_loss,
            "best_weights": best_weights,
            "waited": waited,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "sampler": sampler.state_dict(),
            "random": get_random_state(),
            "settings": asdict(settings),
        }

    while step < total_steps and waited < settings.patience:
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
        score = evaluate(model, plain_val, settings)
        log(step, {"val_loss": score.loss, "val_accuracy": score.accuracy})
        # Early stopping. A copy: state_dict() alone hands out the weights themselves, and the
        # "best" ones would go on being trained.
        waited += 1
        if score.loss < best_loss:
            best_loss, waited = score.loss, 0
            best_weights = copy.deepcopy(model.state_dict())
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    model.load_state_dict(best_weights)
    # The training error without augmentation and dropout, or it could not be compared.
    train_error = 1 - evaluate(model, plain_train, settings).accuracy
    val_error = 1 - evaluate(model, plain_val, settings).accuracy
    test_score = evaluate(model, plain_test, settings, test_time=True)
    print(f"\ntrain_error:      {train_error:.4f}")
    print(f"val_error:        {val_error:.4f}")
    print(f"try_next:         {what_next(train_error, val_error, settings.goal_error)}")
    print(f"test_accuracy:    {test_score.accuracy:.4f}")
    print(f"test_time_mean:   {test_score.mean_accuracy:.4f}")
    print(f"test_time_vote:   {test_score.vote_accuracy:.4f}")
    print("target:           test_accuracy >= 0.93")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
