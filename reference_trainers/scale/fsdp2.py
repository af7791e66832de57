"""Train a model too large for one device with FSDP2: every rank keeps a slice of everything.

When to use    Weights, gradients and optimizer state (16 bytes a parameter with Adam) do not fit
               on one device. If they do, ddp.py communicates less.
Source         FSDP (Zhao et al. 2023, arXiv:2304.11277), ZeRO (Rajbhandari et al. 2019,
               arXiv:1910.02054); `fully_shard` and distributed checkpoints as TorchTitan uses them
               (arXiv:2410.06511). The model is a ViT (Dosovitskiy et al. 2020, arXiv:2010.11929),
               with the settings of DeiT (arXiv:2012.12877) at full scale.
Expected       scikit-learn's 8x8 digits, 1 core, 1 rank: above 94 % validation accuracy.
               With 2 ranks: torchrun --nproc-per-node 2 -- reference_trainers/scale/fsdp2.py
               (the global batch stays what it is: the same training, but for rounding; without
               the --, torchrun would take --log for an option of its own).
Full scale     torchrun --nproc-per-node 8 --nnodes 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400
               -- fsdp2.py --data /imagenet --image-size 224 --patch 14 --width 1664 --layers 48
               --heads 16 --device cuda --amp --epochs 90 --global-batch 4096 --micro-batch 32
               --base-batch 1024 --base-lr 1e-3 --base-warmup-steps 2500 --weight-decay 0.05
               --ema-decay 0.9999 --checkpoint-every 500 --workers 8 (a folder with
               train/<class>/*.jpg and val/<class>/*.jpg). Models beyond a host's memory: build
               them under torch.device("meta"), shard, then `to_empty` and initialise, or load a
               checkpoint straight into the shards.
Resume         Checkpoints go to --out. Start the same command again with --resume: with as many
               ranks as before the run goes on to the last bit (on CPUs) as if it had never been
               stopped; with another number the slices are cut anew, and it sees the same batches in
               the same order.
"""

import argparse
import csv
import math
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------


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
    amp: bool = False  # compute in bfloat16 (its range is that of float32: no loss scaling)
    workers: int = 0  # of each rank; in-memory digits need none
    global_batch: int = 128  # samples a step, over all ranks: fixed, whatever the ranks
    image_size: int = 8
    patch: int = 4  # side of the squares that become tokens
    width: int = 48
    layers: int = 3
    heads: int = 4
    micro_batch: int = 32  # samples a forward pass of one rank: as many as fit the memory
    base_batch: int = 64  # the batch for which base_lr and base_warmup_steps were tuned
    base_lr: float = 3e-3
    base_warmup_steps: int = 10
    scaling: Literal["linear", "sqrt", "none"] = "sqrt"
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    ema_decay: float = 0.97  # averages over about 1 / (1 - decay) steps: a small part of the run
    checkpoint_every: int = 50  # steps
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


# ---- ranks --------------------------------------------------------------------------------------


def join_ranks(settings: Settings) -> tuple[int, int, torch.device]:
    """Join the other processes; this one's rank, how many there are, and its device.

    torchrun sets the variables. Without it, one process is a group of its own: one code path.
    """
    if "RANK" not in os.environ:
        store = dist.HashStore()  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        return 0, 1, torch.device("cuda", 0) if settings.device == "cuda" else torch.device("cpu")
    if settings.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)  # before the first collective, else all meet on device 0
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), device


# ---- data ---------------------------------------------------------------------------------------

Pictures: TypeAlias = TensorDataset | ImageFolder


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


class ResumableDistributedSampler(DistributedSampler[Any]):
    """Each rank's share of one shuffled order that all ranks agree on; may start inside an epoch.

    Rank r gets the places r, r + ranks, r + 2 ranks, ... So the first N samples of the epoch are
    the same N for any number of ranks, and a position counted over all ranks stays true when their
    number changes. The end is dropped, not padded: a repeated sample would be trained on twice.
    """

    def __init__(self, length: int, rank: int, ranks: int, seed: int) -> None:
        # Only the length of the data matters here.
        super().__init__(
            range(length),  # type: ignore[arg-type]
            num_replicas=ranks,
            rank=rank,
            shuffle=True,
            seed=seed,  # the same on every rank, unlike the seed for noise
            drop_last=True,
        )
        self.length = length
        self.position = 0  # samples of this epoch that were trained on, over all ranks

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Indices with the seed of each one's augmentation: other ones in every epoch."""
        first_seed = (self.seed * 1_000_003 + self.epoch) * self.length
        for index in islice(super().__iter__(), self.position // self.num_replicas, None):
            yield index, first_seed + index

    def __len__(self) -> int:
        return self.num_samples - self.position // self.num_replicas

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.set_epoch(state["epoch"])
        self.position = state["position"]


def load_data(settings: Settings) -> tuple[Augmented, Pictures, int]:
    """The training set, the validation set and the number of classes."""
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), normalize]
        augment = v2.Compose(
            [v2.RandomResizedCrop(settings.image_size), v2.RandomHorizontalFlip(), *to_float]
        )
        center = v2.Compose(
            [v2.Resize(settings.image_size), v2.CenterCrop(settings.image_size), *to_float]
        )
        train_folder = ImageFolder(os.path.join(settings.data, "train"))
        val_folder = ImageFolder(os.path.join(settings.data, "val"), center)
        return Augmented(train_folder, augment), val_folder, len(train_folder.classes)
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 8 - 1  # 0..16 becomes -1..1
    labels = torch.from_numpy(digits.target)
    # One fixed split for every seed, with every class in its share on both sides. 361 is odd on
    # purpose: two ranks cannot share it evenly, and the metrics must not care.
    train, val = train_test_split(
        np.arange(len(labels)), test_size=361, random_state=0, stratify=digits.target
    )
    samples = list(zip(images[train], labels[train].tolist(), strict=True))
    # As they are: shifted digits are more than this transformer can learn in so few steps.
    return Augmented(samples, v2.Identity()), TensorDataset(images[val], labels[val]), 10


# ---- model: a vision transformer ----------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, places, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, places, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(dim=0)  # (batch, heads, places, channels) each
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, places, width)
        x = x + self.out(y)
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class ViT(nn.Module):
    def __init__(self, channels: int, classes: int, settings: Settings) -> None:
        super().__init__()
        width, patch = settings.width, settings.patch
        self.cut = nn.Conv2d(channels, width, patch, stride=patch)  # squares become tokens
        places = (settings.image_size // patch) ** 2
        # As large as the tokens they are added to (ViT's 0.02 is for several hundred channels):
        # with tiny ones the model begins by seeing a heap of squares without places, and learns
        # several times more slowly.
        self.positions = nn.Parameter(0.5 * torch.randn(places, width))
        self.blocks = nn.ModuleList(Block(width, settings.heads) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        nn.init.zeros_(self.head.weight)

    def forward(self, images: Tensor) -> Tensor:
        x = self.cut(images).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(self.norm(x).mean(dim=1)).float()
        return out


def shard(model: ViT, mesh: DeviceMesh, amp: bool) -> FSDPModule:
    """Cut every parameter into one slice per rank, in place.

    Each block is a unit of its own: gathered just before it computes, dropped right after, while
    the next one is already on its way. One unit for the whole model would gather it whole.
    """
    # Compute in bfloat16, but add up the ranks' gradients in float32: sums of many small numbers
    # are where its 8 bits of precision hurt. The slices, and so the optimizer, stay in float32.
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if amp else None, reduce_dtype=torch.float32
    )
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    # What the blocks left over. Dropped after the forward pass as well, which is not the default:
    # with no backward pass to follow, in evaluation, it would stay gathered.
    return fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=True)


@torch.no_grad()
def update_average(averaged: nn.Module, model: nn.Module, decay: float) -> None:
    """Move the averaged weights a little towards the model's: each rank only its own slices.

    torch's AveragedModel copies its model, which a sharded one does not allow. There are no
    buffers in this model; if there were, they would have to be copied here.
    """
    for old, new in zip(averaged.parameters(), model.parameters(), strict=True):
        assert isinstance(old, DTensor)
        assert isinstance(new, DTensor)
        # Both are cut alike, so that an average of slices is a slice of the average.
        old.to_local().lerp_(new.to_local(), 1 - decay)


def scaled(base: float, settings: Settings) -> float:
    """The learning rate for a batch k times the base batch.

    Linear, base * k: k small SGD steps in about the same direction make one large one (Goyal et
    al.); it breaks down somewhere above a batch of 8192. Square root, base * sqrt(k): averaging k
    times as many samples shrinks the gradient's noise by sqrt(k), and Adam divides by the size of
    the gradient, noise included (Malladi et al.).
    """
    k = settings.global_batch / settings.base_batch
    return base * {"linear": k, "sqrt": math.sqrt(k), "none": 1.0}[settings.scaling]


def warmup_steps(settings: Settings) -> int:
    """Steps of warm-up. A larger rate needs a longer way up: k times the batch, k times the data.

    As many steps, then, where k is above 1; equal epochs would be k times fewer. (Goyal et al. warm
    up for 5 epochs, 780 steps, at 8192.)
    """
    growth = max(1.0, settings.global_batch / settings.base_batch)
    samples = settings.base_warmup_steps * settings.base_batch * growth
    return max(1, round(samples / settings.global_batch))


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DataLoader[Any], length: int, rank: int, ranks: int
) -> tuple[float, float]:
    """Loss and accuracy over all ranks' samples. Every rank must call this: it communicates.

    A sharded forward pass needs all ranks, so all must have equally many batches, and the data was
    filled up with repeated samples to a multiple of the ranks (see `val_loader`). A sample's place
    tells whether it is one of those; they get no weight. Sums are divided once, at the end.
    """
    model.eval()
    place = rank
    device = next(model.parameters()).device
    # Loss, right answers, samples: on the device, so that no batch waits for the one before.
    sums = torch.zeros(3, dtype=torch.float64, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        counts = place + ranks * torch.arange(len(labels), device=device) < length
        losses = F.cross_entropy(logits, labels, reduction="none")
        right = logits.argmax(dim=1) == labels
        kept = counts.double()
        sums += torch.stack([(losses * kept).sum(), (right * kept).sum(), kept.sum()])
        place += ranks * len(labels)
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    loss, correct, count = sums.tolist()
    return loss / count, correct / count


# ---- checkpoints: the same pattern in every trainer, here a folder that all ranks write ---------


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


def find_checkpoints(out: Path) -> list[Path]:
    """Checkpoint folders, oldest first; the step is zero-padded so that names sort like numbers."""
    return sorted(path for path in out.glob("step_*") if path.suffix != ".partial")


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
    return lambda *_: None


# ---- training -----------------------------------------------------------------------------------


def main() -> None:
    settings = read_settings()
    started = time.perf_counter()
    rank, ranks, device = join_ranks(settings)
    # Equal streams until the model is built, so that all ranks build the same one. (DDP also sends
    # rank 0's weights to all.)
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)

    # One folder for all: rank 0 chooses it and tells the others.
    chosen = [settings.out or tempfile.mkdtemp(prefix="fsdp-") if rank == 0 else ""]
    dist.broadcast_object_list(chosen, src=0)
    out = Path(chosen[0])
    if rank == 0:
        out.mkdir(parents=True, exist_ok=True)
    dist.barrier()  # nobody looks for checkpoints before the folder is there
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out) if rank == 0 else lambda *_: None

    if settings.global_batch % (settings.micro_batch * ranks):
        raise SystemExit(f"--global-batch must be a multiple of --micro-batch times {ranks} ranks")
    accumulate = settings.global_batch // (settings.micro_batch * ranks)

    train_set, val_set, classes = load_data(settings)
    sampler = ResumableDistributedSampler(len(train_set), rank, ranks, settings.seed)
    train_loader: DataLoader[Any] = DataLoader(
        train_set,
        batch_size=settings.micro_batch,
        sampler=sampler,
        drop_last=True,
        num_workers=settings.workers,
        persistent_workers=settings.workers > 0,  # else they start anew at every epoch
        prefetch_factor=2 if settings.workers > 0 else None,
        pin_memory=device.type == "cuda",  # makes the copy to the device asynchronous
        generator=torch.Generator(),  # its own: starting an epoch must not move the global stream
    )
    # In order, filled up with repeated samples to equal shares; `evaluate` leaves those out.
    val_sampler: DistributedSampler[Any] = DistributedSampler(
        val_set, num_replicas=ranks, rank=rank, shuffle=False, drop_last=False
    )
    val_loader: DataLoader[Any] = DataLoader(
        val_set,
        batch_size=settings.micro_batch,
        sampler=val_sampler,
        num_workers=settings.workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    steps_per_epoch = len(train_set) // settings.global_batch
    total_steps = settings.steps or settings.epochs * steps_per_epoch

    # The order matters: build, move to the device, shard, then the optimizer, which has to get the
    # slices and not the tensors they were cut from.
    mesh = init_device_mesh(device.type, (ranks,))
    channels = 3 if settings.data else 1
    model = ViT(channels, classes, settings).to(device)
    ema = ViT(channels, classes, settings).to(device).requires_grad_(False)
    ema.load_state_dict(model.state_dict())
    sharded = shard(model, mesh, settings.amp)  # the same object, now with FSDP's methods
    shard(ema, mesh, settings.amp)
    # Decay only what multiplies: not norms, biases and positions.
    named = list(model.named_parameters())
    weights = [p for name, p in named if p.ndim >= 2 and name != "positions"]
    others = [p for name, p in named if p.ndim < 2 or name == "positions"]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    lr = scaled(settings.base_lr, settings)
    # Fused: one call for all slices, instead of a dozen operations for each.
    optimizer = torch.optim.AdamW(groups, lr=lr, weight_decay=settings.weight_decay, fused=True)
    rise = warmup_steps(settings)

    def lr_share(step: int) -> float:
        """Linear warm-up, then linear decay to zero."""
        rising = (step + 1) / rise
        falling = (total_steps - step) / max(1, total_steps - rise)
        return max(0.0, min(rising, falling, 1.0))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_share)

    step = 0
    best_accuracy = 0.0
    # From here on the ranks' streams differ: with equal dropout masks on all ranks (these models
    # have none), gradients would err alike, and averaging would help less.
    torch.manual_seed(settings.seed + 1 + rank)
    random.seed(settings.seed + 1 + rank)
    np.random.seed(settings.seed + 1 + rank)
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]
        # Every rank reads the slices that are now its own, wherever they were cut before.
        shards: dict[str, Any] = {
            "model": get_model_state_dict(model),
            "ema": get_model_state_dict(ema),
            "optimizer": get_optimizer_state_dict(model, optimizer),
        }
        dcp.load(shards, checkpoint_id=newest)  # type: ignore[attr-defined]
        set_model_state_dict(model, shards["model"])
        set_model_state_dict(ema, shards["ema"])
        set_optimizer_state_dict(model, optimizer, shards["optimizer"])
        state = torch.load(newest / "run.pt", map_location="cpu", weights_only=True)
        scheduler.load_state_dict(state["scheduler"])
        sampler.load_state_dict(state["sampler"])
        step = state["step"]
        best_accuracy = state["best_accuracy"]
        if len(state["random"]) == ranks:
            set_random_state(state["random"][rank])
        else:  # no such stream was ever there: a new one, other than any that was used before
            torch.manual_seed(settings.seed + 1 + rank + 1000 * step)
        if rank == 0:
            print(f"resumed from {newest}, {len(state['random'])} ranks then, {ranks} now")

    def save(name: str) -> None:
        """Write a checkpoint folder. All ranks must call this: each writes its own slices.

        The folder gets its name when all is written: whoever looks sees a whole one or none.
        """
        random_states: list[Any] = [None] * ranks
        dist.all_gather_object(random_states, get_random_state())
        partial = out / f"{name}.partial"
        if rank == 0:
            shutil.rmtree(partial, ignore_errors=True)  # left by a process that was killed
        dist.barrier()
        shards = {
            "model": get_model_state_dict(model),
            "ema": get_model_state_dict(ema),
            "optimizer": get_optimizer_state_dict(model, optimizer),
        }
        # Comes back when every rank has written.
        dcp.save(shards, checkpoint_id=partial)  # type: ignore[attr-defined]
        if rank == 0:
            state = {
                "step": step,
                "best_accuracy": best_accuracy,
                "scheduler": scheduler.state_dict(),
                "sampler": sampler.state_dict(),
                "random": random_states,
                "settings": asdict(settings),
            }
            with (partial / "run.pt").open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            shutil.rmtree(out / name, ignore_errors=True)  # only "best" is written again
            partial.rename(out / name)
            for old in find_checkpoints(out)[: -settings.keep]:
                shutil.rmtree(old)
        dist.barrier()  # nobody goes on, and maybe ends the process, before the folder is there

    while step < total_steps:
        model.train()
        sampler.set_epoch(step // steps_per_epoch)  # else every epoch has the same order
        sampler.position = step % steps_per_epoch * settings.global_batch
        micro_batches = iter(train_loader)
        for _ in range(step % steps_per_epoch, steps_per_epoch):
            step_loss = torch.zeros((), device=device)
            optimizer.zero_grad(set_to_none=True)
            for micro in range(accumulate):
                images, labels = next(micro_batches)
                images = images.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
                # Ranks exchange gradients once a step, in the last backward pass. Until then each
                # keeps whole gradients: where memory is what is short, exchange every time.
                sharded.set_requires_gradient_sync(micro + 1 == accumulate)
                # All micro-batches are of one size: the mean of their means is the mean.
                loss = F.cross_entropy(model(images), labels) / accumulate
                loss.backward()
                step_loss += loss.detach()
            # Slices know that they are slices: this is the norm of the whole, equal on all ranks.
            # (FSDP1 needed a method of its own for that.)
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
            optimizer.step()
            scheduler.step()
            update_average(ema, model, settings.ema_decay)
            step += 1
            sampler.position += settings.global_batch

            if step % settings.log_every == 0:
                # Rank 0's own loss is a part of the truth: average over the ranks.
                dist.all_reduce(step_loss, op=dist.ReduceOp.SUM)
                mean_loss = step_loss.item() / ranks
                log(step, {"train_loss": mean_loss, "lr": optimizer.param_groups[0]["lr"]})
                if rank == 0:
                    print(f"\rstep {step}/{total_steps} loss {mean_loss:.4f}", end="", flush=True)
            # An epoch's end is saved below, once evaluated: a run resumed here would skip that.
            ends = step == total_steps or step % steps_per_epoch == 0
            if step % settings.checkpoint_every == 0 and not ends:
                save(f"step_{step:09d}")
            if step == total_steps:
                break
        val_loss, val_accuracy = evaluate(ema, val_loader, len(val_set), rank, ranks)
        log(step, {"val_loss": val_loss, "val_accuracy": val_accuracy})
        if val_accuracy > best_accuracy:  # the same number on every rank: all go in, or none
            best_accuracy = val_accuracy
            save("best")
        if step % settings.checkpoint_every == 0 or step == total_steps:
            save(f"step_{step:09d}")

    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_loss, val_accuracy = evaluate(ema, val_loader, len(val_set), rank, ranks)
    _, raw_accuracy = evaluate(model, val_loader, len(val_set), rank, ranks)
    if rank == 0:
        print(f"\nval_accuracy:     {val_accuracy:.4f}")
        print(f"val_loss:         {val_loss:.4f}")
        print(f"without_ema:      {raw_accuracy:.4f}")
        print("target:           val_accuracy >= 0.94")
        print(f"ranks:            {ranks}")
        print(f"training_seconds: {time.perf_counter() - started:.1f}")
        print(f"checkpoints:      {out}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
