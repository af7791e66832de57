"""A siamese network: one encoder for all pictures, trained so that distance means difference.

When to use    Same or different? Faces, products, signatures: classes with few examples each, or
               classes that do not exist yet when the network is trained.
Source         Hadsell, Chopra and LeCun 2006 (contrastive loss, equation 4); Schroff et al. 2015,
               FaceNet (arXiv:1503.03832), equation 1 (triplets, unit length, margin 0.2); Hermans
               et al. 2017 (arXiv:1703.07737), section 2 (all triplets of a batch that still count).
Expected       scikit-learn's 8x8 digits, 1 core: above 95 % of the validation pictures have a
               nearest training picture of their own class, after 20 s; with --loss contrastive
               about 95 %.
Full scale     --data /photos --device cuda --amp --epochs 100 --batch-size 256 --embedding 128
               --workers 16 --checkpoint-every 1000. With thousands of classes a batch must be drawn
               as P classes of K pictures (Hermans et al.: 18 of 4), or hardly any picture meets
               another of its class.
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
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50
from torchvision.models.resnet import BasicBlock
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------

# Of a triplet it is how much farther the stranger has to be; of a pair how far strangers have to
# be: ten classes spread evenly over the sphere lie about 1.5 apart.
MARGIN = {"triplet": 0.3, "contrastive": 1.4}


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train/ and val/; empty: scikit-learn's digits
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 10
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 64  # of ten classes: about six pictures each
    loss: Literal["contrastive", "triplet"] = "triplet"
    margin: float = 0.0  # on the unit sphere, distances go from 0 to 2; 0: see MARGIN
    embedding: int = 16  # length of the vectors
    lr: float = 1e-3
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


def load_data(settings: Settings) -> tuple[Augmented, Dataset[Any], Dataset[Any]]:
    """The training set; and as they are, the training pictures and the validation pictures."""
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), normalize]
        augment = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *to_float])
        center = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *to_float])
        train_folder = ImageFolder(os.path.join(settings.data, "train"))
        val_folder = ImageFolder(os.path.join(settings.data, "val"), transform=center)
        plain_folder = ImageFolder(os.path.join(settings.data, "train"), transform=center)
        return Augmented(train_folder, augment), plain_folder, val_folder

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
    plain = TensorDataset(normalize(train_pixels), labels[train])
    return (
        Augmented(samples, augment),
        plain,
        TensorDataset(normalize(scale(pixels[val])), labels[val]),
    )


# ---- model --------------------------------------------------------------------------------------


def build_encoder(settings: Settings) -> nn.Module:
    """A picture in, a vector out. "Siamese" because the same weights see both sides of a pair."""
    if settings.data:
        full: nn.Module = resnet50(weights=None, num_classes=settings.embedding)
        return full

    def shrink(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride=2, bias=False), nn.BatchNorm2d(outputs)
        )

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        BasicBlock(16, 32, stride=2, downsample=shrink(16, 32)),
        BasicBlock(32, 64, stride=2, downsample=shrink(32, 64)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, settings.embedding),
    )


def distances(vectors: Tensor) -> Tensor:
    """How far apart any two of the vectors are, after all were brought to unit length.

    Without the unit length the loss could be lowered by scaling everything up. In float32 under
    autocast: near neighbours differ by less than half precision resolves.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        unit = F.normalize(vectors.float(), dim=1)
        # Not by way of |a|^2 + |b|^2 - 2ab: its rounding gives a distance to oneself, and the root
        # has an infinite slope there. This mode has slope 0 where the distance is 0.
        return torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist")


def contrastive_loss(vectors: Tensor, labels: Tensor, margin: float) -> Tensor:
    """All pairs of the batch: pull the equal together, push the others apart up to a margin.

    Beyond the margin a pair is different enough and has no say any more. The two kinds are averaged
    one by one: there are about nine times as many different pairs as equal ones.
    """
    distance = distances(vectors)
    equal = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    pull = distance[equal & ~itself].square()
    push = F.relu(margin - distance[~equal]).square()
    # A batch without a single equal pair has nothing to pull: 0, not the mean of nothing.
    return pull.sum() / max(1, len(pull)) + push.sum() / max(1, len(push))


def triplet_loss(vectors: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Every anchor with every equal and every different picture of the batch, as far as they count.

    relu(d(anchor, positive) - d(anchor, negative) + margin): zero only when the negative is farther
    away than the positive by the margin. Mind the sign: reversed, it pushes equal pictures apart.
    Averaged over the triplets that still violate the margin: averaged over all, the satisfied ones,
    soon the great majority, would fade the gradient out. Taking the hardest alone is sharper, but
    from a random start it likes to collapse into one point, where the loss is the margin.
    """
    distance = distances(vectors)
    equal = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    loss = F.relu(
        distance[:, :, None] - distance[:, None, :] + margin
    )  # anchor, positive, negative
    valid = (equal & ~itself)[:, :, None] & ~equal[:, None, :]
    violated = (loss > 0) & valid
    return (loss * violated).sum() / violated.sum().clamp(min=1)


@torch.no_grad()
def evaluate(
    encoder: nn.Module, known: DataLoader[Any], asked: DataLoader[Any], device: torch.device
) -> float:
    """Share of the asked pictures whose nearest known picture has the same label."""
    encoder.eval()
    known_vectors, known_labels = embed(encoder, known, device)
    vectors, labels = embed(encoder, asked, device)
    nearest = (vectors @ known_vectors.T).argmax(dim=1)  # unit vectors: largest cosine is nearest
    return (known_labels[nearest] == labels).float().mean().item()


def embed(
    encoder: nn.Module, loader: DataLoader[Any], device: torch.device
) -> tuple[Tensor, Tensor]:
    vectors, labels = [], []
    for images, targets in loader:
        vectors.append(F.normalize(encoder(images.to(device)).float(), dim=1))
        labels.append(targets.to(device))
    return torch.cat(vectors), torch.cat(labels)


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="siamese-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_set, plain_set, val_set = load_data(settings)
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
    plain_loader, val_loader = (
        DataLoader(
            pictures,
            batch_size=settings.batch_size,
            num_workers=settings.workers,
            pin_memory=device.type == "cuda",
            generator=torch.Generator(),
        )
        for pictures in (plain_set, val_set)
    )
    total_steps = settings.steps or settings.epochs * (len(train_set) // settings.batch_size)

    model = build_encoder(settings).to(device)
    loss_of = triplet_loss if settings.loss == "triplet" else contrastive_loss
    margin = settings.margin or MARGIN[settings.loss]
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
                vectors = model(images)
            loss = loss_of(vectors, labels, margin)
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
        val_accuracy = evaluate(model, plain_loader, val_loader, device)
        log(step, {"val_accuracy": val_accuracy})
        if val_accuracy > best_accuracy:
            best_accuracy = val_accuracy
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_accuracy = evaluate(model, plain_loader, val_loader, device)
    print(f"\nval_accuracy:     {val_accuracy:.4f}")
    print("target:           val_accuracy >= 0.95")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
