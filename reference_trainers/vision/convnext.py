"""Train a ConvNeXt-style convolutional network: a CNN with the recipe of a transformer.

When to use    The CNN to start with today. Also the file to copy for layer-wise learning rates,
               which matter most when the weights are already good (fine-tuning).
Source         Liu et al. 2022 (arXiv:2201.03545), section 2 and table 5: depthwise 7x7, one norm
               and one GELU a block, four times wider inside, layer scale 1e-6; AdamW, 4e-3 for a
               batch of 4096, weight decay 0.05, 20 of 300 epochs of warm-up, cosine. Layer-wise
               decay: Clark et al. 2020 (arXiv:2003.10555), Bao et al. 2021 (arXiv:2106.08254).
               The paper uses it for fine-tuning alone (factor 0.7 to 0.9, rate 5e-5); from scratch
               it has little to offer, which is why the default here is mild.
Expected       scikit-learn's 8x8 digits, 1 core: above 94 % validation accuracy in about 30 s.
Full scale     --data /imagenet --device cuda --amp --epochs 300 --batch-size 4096 --lr 4e-3
               --image-size 224 --patch 4 --widths 96 192 384 768 --depths 3 3 9 3
               --layer-decay 1 --layer-scale 1e-6 --ema-decay 0.9999 --warmup 0.067 --workers 16
               --checkpoint-every 1000 (ConvNeXt-T, with MixUp and CutMix as in vit.py: 82 %).
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
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.ops import StochasticDepth
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train/ and val/; empty: scikit-learn's digits
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 14
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 32
    # model
    image_size: int = 8
    patch: int = 1  # side of the patches that the stem reads; 4 on ImageNet
    widths: tuple[int, ...] = (24, 48)  # one stage each; between stages the grid halves
    depths: tuple[int, ...] = (2, 2)
    drop_path: float = 0.1  # for the last block; the first has none, between them it rises evenly
    layer_scale: float = 1.0  # 1e-6 in the paper; so short a run cannot grow it from there
    # optimizer
    lr: float = 4e-3
    weight_decay: float = 0.05
    layer_decay: float = 0.9  # each layer's rate is this times that of the layer after it
    warmup: float = 20 / 300  # share of the run: the paper's 20 of 300 epochs
    ema_decay: float = 0.99  # 0.9999 for runs of 100,000 steps and more
    label_smoothing: float = 0.1
    checkpoint_every: int = 200  # steps, not epochs: an epoch of a real run takes hours
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
            parser.add_argument(flag, type=int, nargs="+", default=field.default)
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


def load_data(settings: Settings) -> tuple[Augmented, Dataset[Any], int]:
    """The training set, the validation set (never augmented) and the number of classes."""
    size = settings.image_size
    scale = v2.ToDtype(torch.float32, scale=True)
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        crop = [v2.RandomResizedCrop(size), v2.RandomHorizontalFlip()]
        augment = v2.Compose([*crop, v2.ToImage(), scale, normalize])
        middle = [v2.Resize(size * 8 // 7), v2.CenterCrop(size)]  # 256 and 224
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


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of a picture that is stored channels first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(x.permute(0, 2, 3, 1))
        return normed.permute(0, 3, 1, 2)


class Block(nn.Module):
    """Mix space (depthwise 7x7), then channels (a small MLP at every place), and add the result."""

    def __init__(self, width: int, drop_path: float, layer_scale: float) -> None:
        super().__init__()
        self.space = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.grow = nn.Linear(width, 4 * width)  # linear layers are 1x1 convolutions, only faster
        self.shrink = nn.Linear(4 * width, width)
        # The branch starts almost silent, and learns how loud to be, channel by channel
        # (Touvron et al. 2021, arXiv:2103.17239).
        self.layer_scale = nn.Parameter(torch.full((width,), layer_scale))
        self.drop_path = StochasticDepth(drop_path, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.space(x).permute(0, 2, 3, 1))  # channels last
        y = self.layer_scale * self.shrink(F.gelu(self.grow(y)))
        out: Tensor = x + self.drop_path(y.permute(0, 3, 1, 2))
        return out


class ConvNeXt(nn.Module):
    def __init__(self, settings: Settings, channels: int, classes: int) -> None:
        super().__init__()
        widths, depths = settings.widths, settings.depths
        rates = iter(torch.linspace(0, settings.drop_path, sum(depths)).tolist())
        # One flat list in the order of the forward pass: layer_groups() counts along it.
        layers: list[nn.Module] = [
            nn.Sequential(
                nn.Conv2d(channels, widths[0], settings.patch, stride=settings.patch),
                ChannelNorm(widths[0]),
            )
        ]
        for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            if stage > 0:
                before = widths[stage - 1]
                halve = nn.Conv2d(before, width, 2, stride=2)
                layers.append(nn.Sequential(ChannelNorm(before), halve))
            layers.extend(Block(width, next(rates), settings.layer_scale) for _ in range(depth))
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(widths[-1], eps=1e-6)
        self.head = nn.Linear(widths[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                nn.init.trunc_normal_(module.weight, std=0.02)
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        features = self.layers(images).mean(dim=(2, 3))  # average over all places
        logits: Tensor = self.head(self.norm(features))
        return logits


def layer_groups(model: ConvNeXt, settings: Settings) -> list[dict[str, Any]]:
    """One learning rate a layer, shrinking towards the input; no decay for norms, biases, scales.

    The head has the full rate, the layer below it `layer_decay` times that, and so on. Each rate is
    written in as `lr` of its group, and the scheduler scales all of them alike.
    """
    stages = [*model.layers, nn.ModuleList([model.norm, model.head])]
    groups = []
    for depth_from_top, stage in enumerate(reversed(stages)):
        rate = settings.lr * settings.layer_decay**depth_from_top
        weights = [p for p in stage.parameters() if p.ndim >= 2]
        others = [p for p in stage.parameters() if p.ndim < 2]
        groups.append({"params": weights, "lr": rate, "weight_decay": settings.weight_decay})
        groups.append({"params": others, "lr": rate, "weight_decay": 0.0})
    return groups


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="convnext-"))
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
        drop_last=True,  # steps of equal weight
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

    model = ConvNeXt(settings, channels=3 if settings.data else 1, classes=classes).to(device)
    optimizer = torch.optim.AdamW(layer_groups(model, settings), lr=settings.lr)
    # Up linearly, then down along half a cosine, counted in steps (table 5).
    warmup_steps = round(settings.warmup * total_steps)

    def rate(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * progress))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
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
        model.train()
        for images, labels in train_loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                # Smoothing belongs to training only: evaluate() measures the plain loss.
                loss = F.cross_entropy(
                    model(images), labels, label_smoothing=settings.label_smoothing
                )
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
            if step == total_steps:
                break
        else:  # the epoch ran to its end
            sampler.epoch += 1
            sampler.position = 0
        val_loss, val_accuracy = evaluate(ema, val_loader, device)
        log(step, {"val_loss": val_loss, "val_accuracy": val_accuracy})
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
    print("target:           val_accuracy >= 0.94")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
