"""Train on several devices with DistributedDataParallel: every rank a copy, gradients averaged.

When to use    The model, its gradients and its optimizer fit on one device, and one device is too
               slow. (They do not fit: fsdp2.py.)
Source         PyTorch DDP (Li et al. 2020, arXiv:2006.15704). Learning rate and warm-up for large
               batches: linear, Goyal et al. 2017 (arXiv:1706.02677); square root for Adam,
               Krizhevsky 2014 (arXiv:1404.5997) and Malladi et al. 2022 (arXiv:2205.10287).
Expected       scikit-learn's 8x8 digits, 1 core, 1 rank: above 95 % validation accuracy.
               The same with 2 ranks: torchrun --nproc-per-node 2 -- reference_trainers/scale/ddp.py
               (the global batch stays what it is: the same training, but for rounding; without
               the --, torchrun would take --log for an option of its own).
Full scale     torchrun --nproc-per-node 8 --nnodes 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400
               -- ddp.py --data /imagenet --device cuda --amp --epochs 90 --global-batch 8192
               --micro-batch 256 --base-batch 256 --optimizer sgd --base-lr 0.1 --scaling linear
               --base-warmup-steps 780 --weight-decay 1e-4 --clip-norm inf --ema-decay 0.999
               --checkpoint-every 500 --workers 8 (a folder with train/<class>/*.jpg and
               val/<class>/*.jpg; ResNet-50, about 76 %).
Resume         Checkpoints go to --out. Start the same command again with --resume: with as many
               ranks as before the run goes on to the last bit (on CPUs) as if it had never been
               stopped; with another number it sees the same batches in the same order.
"""

import argparse
import csv
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.models import resnet50
from torchvision.transforms import v2

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train/ and val/; empty: scikit-learn's digits
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 20
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # of each rank; in-memory digits need none
    global_batch: int = 128  # samples a step, over all ranks: fixed, whatever the ranks
    micro_batch: int = 32  # samples a forward pass of one rank: as many as fit the memory
    base_batch: int = 64  # the batch for which base_lr and base_warmup_steps were tuned
    base_lr: float = 2e-3
    base_warmup_steps: int = 10
    scaling: Literal["linear", "sqrt", "none"] = "sqrt"
    optimizer: Literal["adamw", "sgd"] = "adamw"
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
        augment = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *to_float])
        center = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *to_float])
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
    shift = v2.RandomCrop(8, padding=1, fill=-1)  # by one pixel a digit stays what it is
    return Augmented(samples, shift), TensorDataset(images[val], labels[val]), 10


# ---- model --------------------------------------------------------------------------------------


def build_model(settings: Settings, classes: int) -> nn.Module:
    """ResNet-50, its batch norms measured over all ranks; for the digits a small network."""
    if settings.data:
        full: nn.Module = resnet50(weights=None, num_classes=classes, zero_init_residual=True)
        if settings.device == "cpu":
            return full  # there is no such layer for CPUs
        # Before wrapping. With 256 pictures a rank the ranks' own statistics do as well; with few
        # pictures a rank they do not.
        synchronous: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(full)
        return synchronous
    # Group norm needs no statistics, so that the ranks' number cannot matter at all.
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.GroupNorm(4, 24),
        nn.ReLU(),
        nn.Conv2d(24, 48, 3, stride=2, padding=1),
        nn.GroupNorm(4, 48),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48 * 4 * 4, classes),
    )


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
    model: nn.Module, loader: DataLoader[Any], device: torch.device
) -> tuple[float, float]:
    """Loss and accuracy over all ranks' samples. Every rank must call this: it communicates.

    Sums are added up over the ranks and divided once. The ranks' shares have no padding (see
    `val_loader`), so nobody is counted twice and the counts add up to the data's length.
    """
    model.eval()
    # Loss, right answers, samples: on the device, so that no batch waits for the one before.
    sums = torch.zeros(3, dtype=torch.float64, device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        sums[0] += F.cross_entropy(logits, labels, reduction="sum")
        sums[1] += (logits.argmax(dim=1) == labels).sum()
        sums[2] += len(labels)
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    loss, correct, count = sums.tolist()
    return loss / count, correct / count


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
    chosen = [settings.out or tempfile.mkdtemp(prefix="ddp-") if rank == 0 else ""]
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
    # DistributedSampler would fill up the last places with repeated samples, and they would count
    # twice. Every rank simply takes every `ranks`-th sample: shares may differ by one.
    val_loader: DataLoader[Any] = DataLoader(
        Subset(val_set, range(rank, len(val_set), ranks)),
        batch_size=settings.micro_batch,
        num_workers=settings.workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    steps_per_epoch = len(train_set) // settings.global_batch
    total_steps = settings.steps or settings.epochs * steps_per_epoch

    # The order matters: build, move to the device, wrap, then the optimizer.
    model = build_model(settings, classes).to(device)
    ema = AveragedModel(
        model, multi_avg_fn=get_ema_multi_avg_fn(settings.ema_decay), use_buffers=True
    )
    wrapped = DistributedDataParallel(
        model, device_ids=[device.index] if device.type == "cuda" else None
    )
    # Decay only what multiplies: not norms and biases.
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    lr = scaled(settings.base_lr, settings)
    optimizer: torch.optim.Optimizer
    if settings.optimizer == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=lr, weight_decay=settings.weight_decay)
    else:
        optimizer = torch.optim.SGD(
            groups, lr=lr, momentum=0.9, weight_decay=settings.weight_decay, nesterov=True
        )
    rise = warmup_steps(settings)

    def lr_share(step: int) -> float:
        """Linear warm-up, then linear decay to zero."""
        rising = (step + 1) / rise
        falling = (total_steps - step) / max(1, total_steps - rise)
        return max(0.0, min(rising, falling, 1.0))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_share)
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    best_accuracy = 0.0
    # From here on the ranks' streams differ: with equal dropout masks on all ranks (these models
    # have none), gradients would err alike, and averaging would help less.
    torch.manual_seed(settings.seed + 1 + rank)
    random.seed(settings.seed + 1 + rank)
    np.random.seed(settings.seed + 1 + rank)
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]  # every rank reads the file that rank 0 wrote
        state = torch.load(newest, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        ema.load_state_dict(state["ema"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        sampler.load_state_dict(state["sampler"])
        step = state["step"]
        best_accuracy = state["best_accuracy"]
        if len(state["random"]) == ranks:
            set_random_state(state["random"][rank])
        else:  # no such stream was ever there: a new one, other than any that was used before
            torch.manual_seed(settings.seed + 1 + rank + 1000 * step)
        if rank == 0:
            print(f"resumed from {newest}, {len(state['random'])} ranks then, {ranks} now")

    def snapshot() -> dict[str, Any]:
        """Everything to go on with. All ranks must call this: it collects their random states."""
        random_states: list[Any] = [None] * ranks
        dist.all_gather_object(random_states, get_random_state())
        return {
            "step": step,
            "best_accuracy": best_accuracy,
            "model": model.state_dict(),  # the bare model: no "module." before the names
            "ema": ema.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "sampler": sampler.state_dict(),
            "random": random_states,
            "settings": asdict(settings),
        }

    while step < total_steps:
        wrapped.train()
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
                # Ranks exchange gradients once a step, in the last backward pass. DDP decides in
                # the forward pass whether to, so that it belongs inside `no_sync` as well.
                last = micro + 1 == accumulate
                with nullcontext() if last else wrapped.no_sync():
                    with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                        # All micro-batches are of one size: the mean of their means is the mean.
                        loss = F.cross_entropy(wrapped(images), labels) / accumulate
                    scaler.scale(loss).backward()
                step_loss += loss.detach()
            # The gradients are now the mean over the ranks, and the same on each.
            scaler.unscale_(optimizer)  # clip real gradients, not scaled ones
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= scale:  # else the gradients overflowed: no step was taken
                scheduler.step()
                ema.update_parameters(model)
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
                state = snapshot()
                if rank == 0:
                    save_step(state, out, settings.keep)
            if step == total_steps:
                break
        val_loss, val_accuracy = evaluate(ema, val_loader, device)
        log(step, {"val_loss": val_loss, "val_accuracy": val_accuracy})
        if val_accuracy > best_accuracy:  # the same number on every rank: all go in, or none
            best_accuracy = val_accuracy
            state = snapshot()
            if rank == 0:
                save_atomically(state, out / "best.pt")
        if step % settings.checkpoint_every == 0 or step == total_steps:
            state = snapshot()
            if rank == 0:
                save_step(state, out, settings.keep)

    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_loss, val_accuracy = evaluate(ema, val_loader, device)
    _, raw_accuracy = evaluate(model, val_loader, device)
    if rank == 0:
        print(f"\nval_accuracy:     {val_accuracy:.4f}")
        print(f"val_loss:         {val_loss:.4f}")
        print(f"without_ema:      {raw_accuracy:.4f}")
        print("target:           val_accuracy >= 0.95")
        print(f"ranks:            {ranks}")
        print(f"training_seconds: {time.perf_counter() - started:.1f}")
        print(f"checkpoints:      {out}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
