"""Train a Vision Transformer on pictures alone: AdamW, warm-up and cosine, strong augmentation.

When to use    Image classification with a transformer, without pretraining. A ViT has no built-in
               idea of what a picture is; augmentation and regularisation must make up for it.
Source         Dosovitskiy et al. 2020 (arXiv:2010.11929) for the model; Touvron et al. 2020, DeiT
               (arXiv:2012.12877), table 9, for the recipe: AdamW, 1e-3 for a batch of 1024, weight
               decay 0.05, 5 of 300 epochs of warm-up, cosine, label smoothing 0.1, stochastic
               depth 0.1, RandAugment 9, MixUp 0.8, CutMix 1.0. Pooling by average and the 2-D
               patch grid as in Beyer et al. 2022 (arXiv:2205.01580).
Expected       scikit-learn's 8x8 digits, 1 core: above 94 % validation accuracy in under a minute.
Full scale     --data /imagenet --device cuda --amp --epochs 300 --batch-size 1024 --lr 1e-3
               --image-size 224 --patch 16 --width 384 --depth 12 --heads 6 --rand-augment 2
               --warmup 0.017 --mixup-alpha 0.8 --magnitude 9 --ema-decay 0.9999 --workers 16
               --checkpoint-every 1000 (ViT-S/16: about 80 %).
Compare        --no-mix, --no-decay-weights-only, --warmup 0, --no-zero-init switch one decision
               off each; the summary shows the accuracy with and without EMA.
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
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.ops import StochasticDepth
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
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    batch_size: int = 64
    # model
    image_size: int = 8
    patch: int = 2  # 8 / 2: a grid of 4 x 4 patches; on ImageNet 224 / 16: 14 x 14
    width: int = 48
    depth: int = 4
    heads: int = 4
    drop_path: float = 0.1  # for the last block; the first has none, between them it rises evenly
    zero_init: bool = True  # every block starts as the identity
    # optimizer
    lr: float = 2e-3  # 1e-3 for a batch of 1024 on ImageNet
    weight_decay: float = 0.05
    decay_weights_only: bool = True  # not norms, biases and positions
    warmup: float = 0.1  # share of the run
    clip: float = 1.0
    ema_decay: float = 0.99  # reached slowly: see averaged_weights()
    # augmentation
    rand_augment: int = 1  # operations a picture; small pictures stand less
    magnitude: int = 5  # 9 on ImageNet
    mix: bool = True  # MixUp or CutMix, drawn anew for each batch
    mixup_alpha: float = 0.2  # the larger, the closer to half and half; DeiT: 0.8
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
    # RandAugment (Cubuk et al. 2019, arXiv:1909.13719) works on bytes: it must stand before the
    # conversion to float, and everything random before Normalize.
    rand_augment = v2.RandAugment(settings.rand_augment, settings.magnitude)
    scale = v2.ToDtype(torch.float32, scale=True)
    if settings.data:
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        crop = [v2.RandomResizedCrop(size), v2.RandomHorizontalFlip()]
        augment = v2.Compose([*crop, rand_augment, v2.ToImage(), scale, normalize])
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
    # No flip: the mirror image of a 2 is not a 2.
    augment = v2.Compose([rand_augment, scale, normalize])
    samples = list(zip(pixels[train], labels[train].tolist(), strict=True))
    return (
        Augmented(samples, augment),
        TensorDataset(normalize(scale(pixels[val])), labels[val]),
        10,
    )


# ---- model --------------------------------------------------------------------------------------


class Block(nn.Module):
    """Pre-norm attention, then pre-norm MLP, each added to the stream that passes through."""

    def __init__(self, width: int, heads: int, drop_path: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)
        # Skips the branch for whole samples and scales up the rest; idle in eval mode
        # (Huang et al. 2016, arXiv:1603.09382).
        self.drop_path = StochasticDepth(drop_path, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each: batch, head, token, channel
        mixed = F.scaled_dot_product_attention(query, key, value)
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.drop_path(self.out(mixed))
        hidden = F.gelu(self.mlp_in(self.norm2(x)))
        out: Tensor = x + self.drop_path(self.mlp_out(hidden))
        return out


class ViT(nn.Module):
    def __init__(self, settings: Settings, channels: int, classes: int) -> None:
        super().__init__()
        width, depth = settings.width, settings.depth
        self.patches = nn.Conv2d(channels, width, settings.patch, stride=settings.patch)
        tokens = (settings.image_size // settings.patch) ** 2
        self.position = nn.Parameter(torch.empty(1, tokens, width))
        # From 0 in the first block up to the full rate in the last: early features are needed by
        # all that follows (Huang et al., section 4).
        rates = torch.linspace(0, settings.drop_path, depth).tolist()
        self.blocks = nn.Sequential(*[Block(width, settings.heads, rate) for rate in rates])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

        for module in self.modules():
            if isinstance(module, nn.Linear):
                # Keeps the variance both ways, whatever the width (Glorot and Bengio 2010), as in
                # the original ViT. DeiT's fixed 0.02 fits widths of several hundred only.
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        # As large as the patches they are added to. The usual 0.02 is for long runs: the model
        # begins with patches without places, and a short run spends half its epochs on that.
        nn.init.trunc_normal_(self.position, std=0.5)
        if settings.zero_init:
            # Only the last layer of a branch: were the whole branch zero, no gradient would flow.
            for block in self.blocks.children():
                assert isinstance(block, Block)
                nn.init.zeros_(block.out.weight)
                nn.init.zeros_(block.mlp_out.weight)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        x = self.norm(self.blocks(x))
        logits: Tensor = self.head(x.mean(dim=1))
        return logits


def parameter_groups(model: nn.Module, settings: Settings) -> list[dict[str, Any]]:
    """Weight decay for matrices and filters only.

    Pulling a norm's scale or a bias towards zero does not make a function simpler, and a position
    that is rarely needed would be forgotten. `--no-decay-weights-only` shows the difference.
    """
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        is_weight = parameter.ndim >= 2 and name != "position"
        if is_weight or not settings.decay_weights_only:
            decayed.append(parameter)
        else:
            others.append(parameter)
    return [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]


def averaged_weights(model: nn.Module, decay: float) -> AveragedModel:
    """An exponential moving average whose decay rises: 0.18, 0.25, ... up to `decay`.

    In the beginning the weights improve fast, and an average with a memory of thousands of steps
    would drag the random start along. min(decay, (1 + n) / (10 + n)) is the rule of TensorFlow's
    ExponentialMovingAverage. It has to go up: a rule that starts near 1 and falls does the reverse.
    """

    def average(old: Tensor, new: Tensor, count: Tensor | int) -> Tensor:
        if not old.is_floating_point():  # counters of batches: there is nothing to average
            return new
        current = min(decay, (1 + int(count)) / (10 + int(count)))
        mixed: Tensor = torch.lerp(old, new, 1 - current)
        return mixed

    return AveragedModel(model, avg_fn=average, use_buffers=True)


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="vit-"))
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

    model = ViT(settings, channels=3 if settings.data else 1, classes=classes).to(device)
    optimizer = torch.optim.AdamW(
        parameter_groups(model, settings), lr=settings.lr, betas=(0.9, 0.999)
    )
    # Adam's second moments are guesses in the first steps, and attention is sharp: full steps then
    # can do damage that never heals. Hence up linearly, then down along half a cosine
    # (Loshchilov and Hutter 2016, arXiv:1608.03983), counted in steps.
    warmup_steps = round(settings.warmup * total_steps)

    def rate(step: int) -> float:
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * progress))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    ema = averaged_weights(model, settings.ema_decay)
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)
    # MixUp (Zhang et al. 2017, arXiv:1710.09412) blends two pictures, CutMix (Yun et al. 2019,
    # arXiv:1905.04899) pastes a part of one into the other. Both blend the labels alike and return
    # them as one row of probabilities a picture, which cross_entropy takes as they are.
    mix_or_cut = v2.RandomChoice(
        [
            v2.MixUp(alpha=settings.mixup_alpha, num_classes=classes),
            v2.CutMix(alpha=1.0, num_classes=classes),
        ]
    )

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
            if settings.mix:
                images, labels = mix_or_cut(images, labels)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                # Smoothing belongs to training only: evaluate() measures the plain loss.
                loss = F.cross_entropy(
                    model(images), labels, label_smoothing=settings.label_smoothing
                )
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)  # clip the gradients themselves, not their scaled images
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
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
