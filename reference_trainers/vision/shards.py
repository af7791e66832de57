"""Train from shards: WebDataset's tar files, or FFCV where it is installed.

When to use    Millions of files. Opening each is slow on any disk and hopeless over a network;
               shards are read from front to back. FFCV goes further: decoded on all cores from a
               memory-mapped file, it feeds the fastest GPUs.
Source         Aizman et al. 2020, WebDataset (arXiv:2001.01858); Leclerc et al. 2023, FFCV
               (arXiv:2306.12517); their documentation for the calls.
Expected       scikit-learn's 8x8 digits, written as eight shards of PNG first, 1 core: above 93 %
               validation accuracy in under a minute.
Full scale     --data /shards (train-*.tar and val-*.tar; members <key>.jpg and <key>.cls), --device
               cuda --amp --image-size 224 --steps 450000 --batch-size 256 --lr 0.1 --workers 16
               --buffer 5000 --checkpoint-every 1000. --loader ffcv: the same folder with
               train.beton and val.beton, made by ffcv.writer.DatasetWriter from an ImageFolder.
               Shards of about 1 GB, many more than workers x GPUs: each worker reads whole shards.
Resume         The stream has no index to jump to. Its order follows from (seed, epoch), so a
               resumed run reads on past what it has seen, without decoding it.
"""

import argparse
import csv
import os
import random
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
import webdataset as wds
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, default_collate, get_worker_info
from torchvision.models import resnet50
from torchvision.models.resnet import BasicBlock
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train-*.tar and val-*.tar; empty: scikit-learn's digits, as shards
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    steps: int = 350  # a stream is measured in steps: its length need not be known
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # about the number of cores; at most the number of shards
    loader: Literal["webdataset", "ffcv"] = "webdataset"
    image_size: int = 8
    classes: int = 1000  # in --data: a stream does not tell how many there are
    buffer: int = 1000  # samples in the shuffle buffer of each worker
    eval_every: int = 100
    batch_size: int = 32
    lr: float = 0.1  # a short run; the same for a batch of 256 on ImageNet (He et al.)
    momentum: float = 0.9
    weight_decay: float = 1e-4
    ema_decay: float = 0.98  # averages over about 1 / (1 - decay) steps: a small part of the run
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


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's

# ---- data ---------------------------------------------------------------------------------------


Batches = Iterator[tuple[Tensor, Tensor]]


@dataclass
class Position:
    """How far into which epoch of the stream training is."""

    epoch: int = 0
    batches: int = 0


def write_digits(folder: Path) -> None:
    """scikit-learn's digits as WebDataset shards: <key>.png and <key>.cls side by side in a tar."""
    digits = load_digits()
    pixels = (digits.images * (255 / 16)).astype(np.uint8)
    train, val = train_test_split(
        np.arange(len(pixels)), test_size=0.2, random_state=0, stratify=digits.target
    )
    for part, indices, count in (("train", train, 8), ("val", val, 2)):
        # Every shard a random mix of classes: a shuffle buffer cannot mend a sorted tar file.
        for shard, members in enumerate(np.array_split(indices, count)):
            with wds.TarWriter(str(folder / f"{part}-{shard:06d}.tar")) as tar:
                for index in members:
                    picture = Image.fromarray(pixels[index])
                    label = int(digits.target[index])
                    tar.write({"__key__": f"{index:06d}", "png": picture, "cls": label})


def to_tensors(
    sample: dict[str, Any], transform: Callable[[Any], Tensor], seed: str
) -> tuple[Tensor, int]:
    """One decoded sample. Its augmentation follows from the seed, the epoch and its own name.

    A function of the module, not a lambda: workers that are spawned (Windows, macOS) pickle it.
    """
    picture = sample["jpg"] if "jpg" in sample else sample["png"]
    with torch.random.fork_rng(devices=[]):  # the caller's stream stays as it was
        torch.default_generator.manual_seed(zlib.crc32(f"{seed}/{sample['__key__']}".encode()))
        return transform(picture), sample["cls"]


def skip_seen(samples: Iterator[Any], batches: int, batch_size: int) -> Iterator[Any]:
    """Pass over the samples that this worker had contributed to the batches already trained on.

    A loader takes batches from its workers in turn: of the first n, worker w made n - w, divided by
    the number of workers and rounded up. It holds until a worker runs out of shards, so the shards
    should be of equal size.
    """
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(samples, len(range(worker, batches, workers)) * batch_size, None)


def webdataset_epoch(
    settings: Settings, folder: Path, transform: v2.Compose, position: Position
) -> Batches:
    """Training batches from `position` to the end of its epoch."""
    seed = f"{settings.seed}/{position.epoch}"  # an own order and own augmentation every epoch
    shards = sorted(str(path) for path in folder.glob("train-*.tar"))
    random.Random(seed).shuffle(shards)
    pipeline = wds.DataPipeline(
        wds.SimpleShardList(shards),
        # Without these two every rank and every worker would read the same shards.
        wds.split_by_node,
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        # Shards in random order, then samples in random order within a window: nearly a shuffle.
        wds.shuffle(settings.buffer, initial=settings.buffer, rng=random.Random(seed)),
        partial(skip_seen, batches=position.batches, batch_size=settings.batch_size),
        wds.decode("pilrgb"),
        wds.map(partial(to_tensors, transform=transform, seed=seed)),
        wds.batched(settings.batch_size, collation_fn=default_collate, partial=False),
    )
    return iter(
        DataLoader(
            pipeline,
            batch_size=None,  # the pipeline makes the batches, in its workers
            num_workers=settings.workers,
            prefetch_factor=2 if settings.workers > 0 else None,
            pin_memory=settings.device.startswith("cuda"),
            generator=torch.Generator(),  # its own: it must not move the global stream
        )
    )


def webdataset_val(settings: Settings, folder: Path, transform: v2.Compose) -> Batches:
    pipeline = wds.DataPipeline(
        wds.SimpleShardList(sorted(str(path) for path in folder.glob("val-*.tar"))),
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.decode("pilrgb"),
        wds.map(partial(to_tensors, transform=transform, seed="")),
        wds.batched(settings.batch_size, collation_fn=default_collate, partial=True),
    )
    return iter(
        DataLoader(
            pipeline, batch_size=None, num_workers=settings.workers, generator=torch.Generator()
        )
    )


def ffcv_batches(settings: Settings, folder: Path, position: Position | None) -> Batches:
    """The same through FFCV: training batches from `position`; without one, validation batches."""
    try:
        from ffcv.fields.decoders import (
            CenterCropRGBImageDecoder,
            IntDecoder,
            RandomResizedCropRGBImageDecoder,
        )
        from ffcv.loader import Loader, OrderOption
        from ffcv.transforms import NormalizeImage, Squeeze, ToDevice, ToTensor, ToTorchImage
    except ImportError as error:
        raise SystemExit(
            "--loader ffcv needs FFCV, which is not installed (pip install ffcv; it builds against "
            "OpenCV and libjpeg-turbo, see https://ffcv.io). --loader webdataset needs neither."
        ) from error
    device = torch.device(settings.device)
    size = (settings.image_size, settings.image_size)
    train = position is not None
    decoder = (
        RandomResizedCropRGBImageDecoder(size)
        if train
        else CenterCropRGBImageDecoder(size, ratio=224 / 256)
    )
    mean, std = np.array(MEAN) * 255, np.array(STD) * 255  # FFCV's pictures are bytes still
    to_device = ToDevice(device, non_blocking=True)
    loader = Loader(
        str(folder / ("train.beton" if train else "val.beton")),
        batch_size=settings.batch_size,
        num_workers=max(1, settings.workers),
        # Quasi-random: shuffled within windows that fit into memory, as a shuffle buffer does.
        order=OrderOption.QUASI_RANDOM if train else OrderOption.SEQUENTIAL,
        seed=settings.seed,
        drop_last=train,
        pipelines={
            "image": [
                decoder,
                ToTensor(),
                to_device,
                ToTorchImage(),
                NormalizeImage(mean, std, np.float32),
            ],
            "label": [IntDecoder(), ToTensor(), Squeeze(), to_device],
        },
    )
    if position is None:
        return iter(loader)
    loader.next_epoch = position.epoch  # the order follows from (seed, epoch)
    return islice(iter(loader), position.batches, None)


def prepare(settings: Settings, out: Path) -> tuple[Path, v2.Compose, v2.Compose, int]:
    """The folder with the shards, the transforms for training and validation, the class count."""
    scale = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    if settings.data:
        size = settings.image_size
        augment = [v2.RandomResizedCrop(size), v2.RandomHorizontalFlip()]
        center = [v2.Resize(size * 8 // 7), v2.CenterCrop(size)]
        return (
            Path(settings.data),
            v2.Compose([*augment, *scale]),
            v2.Compose([*center, *scale]),
            settings.classes,
        )
    folder = out / "shards"
    if not folder.exists():
        # Complete or not there: a run killed here would otherwise leave half of the shards.
        unfinished = Path(tempfile.mkdtemp(dir=out))
        write_digits(unfinished)
        unfinished.rename(folder)
    return folder, v2.Compose([v2.RandomCrop(8, padding=1), *scale]), v2.Compose(scale), 10


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
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
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
def evaluate(model: nn.Module, batches: Batches, device: torch.device) -> tuple[float, float]:
    """Loss and accuracy over all samples: sums divided once, so a short last batch weighs right."""
    model.eval()
    loss = torch.zeros((), device=device)
    correct = torch.zeros((), device=device)
    count = 0
    for images, labels in batches:
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

    out = Path(settings.out or tempfile.mkdtemp(prefix="shards-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    folder, augment, center, classes = prepare(settings, out)
    position = Position()

    def train_batches() -> Batches:
        if settings.loader == "ffcv":
            return ffcv_batches(settings, folder, position)
        return webdataset_epoch(settings, folder, augment, position)

    def val_batches() -> Batches:
        if settings.loader == "ffcv":
            return ffcv_batches(settings, folder, None)
        return webdataset_val(settings, folder, center)

    # The model goes to its device first: the optimizer keeps references to the parameters.
    model = build_model(settings, classes).to(device)
    # Decay only what multiplies (convolutions, linear layers). Shrinking norm scales and biases
    # restrains nothing useful (Jia et al. 2018, arXiv:1807.11205, section 3.2).
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(
        groups, lr=settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay
    )
    # Counted in steps, like the calls of scheduler.step() below.
    milestones = [round(settings.steps * share) for share in (0.3, 0.6, 0.9)]
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, gamma=0.1)
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
        position = Position(**state["sampler"])
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
            "sampler": asdict(position),
            "random": get_random_state(),
            "settings": asdict(settings),
        }

    while step < settings.steps:
        model.train()
        for images, labels in train_batches():
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
            position.batches += 1

            if step % settings.log_every == 0:  # reading the loss waits for the device
                log(step, {"train_loss": loss.item(), "lr": optimizer.param_groups[0]["lr"]})
                print(f"\rstep {step}/{settings.steps} loss {loss.item():.4f}", end="", flush=True)
            if step % settings.eval_every == 0:
                val_loss, val_accuracy = evaluate(ema, val_batches(), device)
                log(step, {"val_loss": val_loss, "val_accuracy": val_accuracy})
                if val_accuracy > best_accuracy:
                    best_accuracy = val_accuracy
                    save_atomically(snapshot(), out / "best.pt")
            if step % settings.checkpoint_every == 0:
                save_step(snapshot(), out, settings.keep)
            if step == settings.steps:
                break
        else:  # the epoch ran to its end
            position = Position(position.epoch + 1)

    save_step(snapshot(), out, settings.keep)
    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_loss, val_accuracy = evaluate(ema, val_batches(), device)
    _, raw_accuracy = evaluate(model, val_batches(), device)
    print(f"\nval_accuracy:     {val_accuracy:.4f}")
    print(f"val_loss:         {val_loss:.4f}")
    print(f"without_ema:      {raw_accuracy:.4f}")
    print("target:           val_accuracy >= 0.93")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
