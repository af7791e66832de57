"""Train a generator by flow matching: a small diffusion transformer and straight paths.

When to use    The first choice today for new generators of pictures, sound or video: the simplest
               loss, and few sampling steps.
Source         Flow matching (Lipman et al. 2022, arXiv:2210.02747), rectified flow (Liu et al.
               2022, arXiv:2209.03003). The network is a diffusion transformer with adaLN-Zero (DiT,
               Peebles and Xie 2022, arXiv:2212.09748; its full-scale settings too). Drawing t from
               a logit-normal (Stable Diffusion 3, Esser et al. 2024, arXiv:2403.03206). Guidance
               (Ho and Salimans 2022, arXiv:2207.12598).
Expected       scikit-learn's 8x8 digits, 1 core: a Fréchet distance below 20 in under a minute.
Full scale     --data /imagenet --image-size 64 --patch 4 --width 1152 --layers 28 --heads 16
               --device cuda --amp --batch-size 256 --lr 1e-4 --ema-decay 0.9999 --steps 400000
               --flip --eval-every 10000 --eval-samples 10000 --sample-steps 50 --workers 16
               (a folder with train/<class>/*.jpg and val/<class>/*.jpg). This is DiT-XL; above 64
               pixels it works on the latents of an autoencoder.
Resume         Checkpoints go to --out. Start the same command again with --resume: the run goes
               on where the newest checkpoint stands, and on a CPU its losses are the same to the
               last bit as if it had never been stopped.
"""

import argparse
import csv
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, Sampler, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.models import inception_v3
from torchvision.transforms import v2
from torchvision.utils import save_image

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train/ and val/; empty: scikit-learn's digits
    image_size: int = 8
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    steps: int = 500
    seed: int = 0
    out: str = ""  # where checkpoints, logs and sample grids go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    flip: bool = False  # mirror half the pictures: right for photographs, wrong for digits
    time_sampling: Literal["uniform", "logit_normal"] = "uniform"
    drop_label: float = 0.1  # share of samples trained without their class (Ho and Salimans)
    guidance: float = 1.5  # 1: plain conditional sampling; more: more typical, less varied
    sample_steps: int = 6  # of two network calls each
    patch: int = 2  # side of the squares that become tokens
    width: int = 64
    layers: int = 3
    heads: int = 4
    batch_size: int = 48  # more is better here: 256 to 2048 at full scale
    lr: float = 2e-3  # 1e-4 to 2e-4 at full scale
    warmup_steps: int = 50
    weight_decay: float = 0.0  # DiT uses none
    clip_norm: float = 1.0
    ema_decay: float = 0.99  # averages over about 1 / (1 - decay) steps; 0.9999 for long runs
    eval_every: int = 250  # steps between sample grids and Fréchet distances
    eval_samples: int = 360
    checkpoint_every: int = 100  # steps
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


class ResumableSampler(Sampler[int]):
    """A shuffled order that follows from (seed, epoch) and can start inside an epoch.

    `position` counts samples that were trained on. The training loop moves it, not the iterator:
    a loader with workers reads ahead of what was trained on.
    """

    def __init__(self, length: int, seed: int) -> None:
        self.length = length
        self.seed = seed
        self.epoch = 0
        self.position = 0

    def __len__(self) -> int:
        return self.length - self.position

    def __iter__(self) -> Iterator[int]:
        stream = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.length, generator=stream)[self.position :]
        yield from order.tolist()

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed = state["seed"]
        self.epoch = state["epoch"]
        self.position = state["position"]


Pictures: TypeAlias = TensorDataset | ImageFolder


def load_images(settings: Settings) -> tuple[Pictures, Pictures, int, int]:
    """Training and held-out pictures in [-1, 1] with their classes; channels; number of classes."""
    if settings.data:
        transform = v2.Compose(
            [
                v2.Resize(settings.image_size),
                v2.CenterCrop(settings.image_size),
                v2.ToImage(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5]),
            ]
        )
        train_folder = ImageFolder(os.path.join(settings.data, "train"), transform)
        val_folder = ImageFolder(os.path.join(settings.data, "val"), transform)
        return train_folder, val_folder, 3, len(train_folder.classes)

    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 8 - 1  # 0..16 becomes -1..1
    labels = torch.from_numpy(digits.target)
    # One fixed split for every seed, with every class in its share on both sides.
    train, val = train_test_split(
        np.arange(len(labels)), test_size=0.2, random_state=0, stratify=digits.target
    )
    return (
        TensorDataset(images[train], labels[train]),
        TensorDataset(images[val], labels[val]),
        1,
        10,
    )


# ---- the flow -----------------------------------------------------------------------------------


def draw_times(count: int, settings: Settings, device: torch.device) -> Tensor:
    """A t in (0, 1) for each sample, shaped (count,).

    Kept one-dimensional; `.squeeze()` on a (count, 1, 1, 1) tensor would also drop the batch axis
    of a batch of one.
    """
    if settings.time_sampling == "logit_normal":
        # The middle of the path is the hard part: near its ends the answer is almost the mean of
        # the data or of the noise (Esser et al., section 3.1).
        return torch.randn(count, device=device).sigmoid()
    return torch.rand(count, device=device)


def point_on_path(images: Tensor, noise: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """x_t on the straight line from noise (t = 0) to picture (t = 1), and the line's velocity.

    The target is the derivative of x_t by t; turn the line around and its sign turns too.
    """
    t = t.view(-1, 1, 1, 1)
    x_t = (1 - t) * noise + t * images
    velocity = images - noise
    return x_t, velocity


@torch.no_grad()
def sample(
    model: nn.Module, noise: Tensor, labels: Tensor, null: int, settings: Settings
) -> Tensor:
    """Follow the learned velocity from noise to picture, by Heun's second-order steps.

    Two network calls a step, and still better than twice as many Euler steps (Karras et al. 2022,
    arXiv:2206.00364).
    """
    model.eval()
    no_label = torch.full_like(labels, null)

    def velocity(x: Tensor, time_now: float) -> Tensor:
        t = torch.full((2 * len(x),), time_now, device=x.device)
        # With and without the class in one batch; then further along the difference.
        both = model(torch.cat([x, x]), t, torch.cat([labels, no_label]))
        with_label, without = both.chunk(2)
        guided: Tensor = without + settings.guidance * (with_label - without)
        return guided

    x = noise
    width = 1 / settings.sample_steps
    for i in range(settings.sample_steps):
        first = velocity(x, i * width)
        second = velocity(x + width * first, (i + 1) * width)
        x = x + width * (first + second) / 2
    return x.clamp(-1, 1)


# ---- model: a diffusion transformer -------------------------------------------------------------


def wave_features(t: Tensor, width: int) -> Tensor:
    """Sines and cosines of 1000 t at frequencies from 1 to 1 / 10000."""
    half = width // 2
    frequencies = torch.exp(-math.log(10_000) * torch.arange(half, device=t.device) / half)
    angles = 1000 * t[:, None] * frequencies  # the usual frequencies expect t from 0 to 1000
    return torch.cat([angles.cos(), angles.sin()], dim=1)


def grid_positions(side: int, width: int) -> Tensor:
    """Fixed waves for the row in one half of the channels, for the column in the other."""
    rows = torch.arange(side).repeat_interleave(side)
    columns = torch.arange(side).repeat(side)
    waves = [wave_features(place / 1000, width // 2) for place in (rows, columns)]
    return torch.cat(waves, dim=1)


class Block(nn.Module):
    """Attention and MLP, each scaled, shifted and gated by time and class (adaLN-Zero)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # The condition supplies scale and shift, so the norms have none of their own.
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.modulate = nn.Linear(width, 6 * width)
        # All gates start at zero, every block as the identity: DiT's best conditioning.
        nn.init.zeros_(self.modulate.weight)
        nn.init.zeros_(self.modulate.bias)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        batch, places, width = x.shape
        shift1, scale1, gate1, shift2, scale2, gate2 = (
            self.modulate(condition).unsqueeze(1).chunk(6, dim=-1)
        )
        qkv = self.qkv(self.norm1(x) * (1 + scale1) + shift1)
        # (batch, places, 3 * width) to three of (batch, heads, places, channels of a head)
        qkv = qkv.view(batch, places, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(dim=0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, places, width)
        x = x + gate1 * self.out(y)
        out: Tensor = x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)
        return out


class DiT(nn.Module):
    positions: Tensor

    def __init__(self, image_channels: int, classes: int, settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.width, self.patch = width, settings.patch
        # One row more than there are classes: "no class" is learned like any other. Class 0, or a
        # vector of zeros, would mean something else already.
        self.null = classes
        self.label = nn.Embedding(classes + 1, width)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.cut = nn.Conv2d(image_channels, width, settings.patch, stride=settings.patch)
        positions = grid_positions(settings.image_size // settings.patch, width)
        self.register_buffer("positions", positions, persistent=False)
        self.blocks = nn.ModuleList(Block(width, settings.heads) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulate = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, image_channels * settings.patch**2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, t: Tensor, labels: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        condition = F.silu(self.time(wave_features(t, self.width)) + self.label(labels))
        tokens = self.cut(x).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            tokens = block(tokens, condition)
        shift, scale = self.modulate(condition).unsqueeze(1).chunk(2, dim=-1)
        tokens = self.out(self.norm(tokens) * (1 + scale) + shift)
        # (batch, places, channels of a patch) to pixels: the inverse of `cut`.
        grid = tokens.transpose(1, 2).unflatten(2, (height // self.patch, width // self.patch))
        return F.pixel_shuffle(grid, self.patch).float()


# ---- quality: a Fréchet distance ----------------------------------------------------------------


class SmallFeatures(nn.Module):
    """A digit classifier; the layer before its logits describes a picture."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 32),
            nn.ReLU(),
        )
        self.head = nn.Linear(32, classes)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(images)
        return features, self.head(features)


class InceptionFeatures(nn.Module):
    """The usual choice for photographs. torchvision's weights are not those of published FIDs:
    distances compare between runs of this file, for a paper use a reference implementation."""

    def __init__(self) -> None:
        super().__init__()
        self.network = inception_v3(weights="DEFAULT", transform_input=True)
        self.head = self.network.fc
        self.network.fc = nn.Identity()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        large = F.interpolate(images, size=299, mode="bilinear", antialias=True)
        features = self.network(large)
        return features, self.head(features)


def feature_network(settings: Settings, train_set: Pictures, device: torch.device) -> nn.Module:
    """Frozen features. For the digits trained here, always from seed 0: the measuring rod must
    not change with the run's seed, nor may making it move the run's own random streams."""
    if settings.data:
        inception = InceptionFeatures().to(device)
        inception.eval()
        return inception.requires_grad_(False)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = SmallFeatures(classes=10).to(device)
        loader: DataLoader[Any] = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
        for _ in range(8):
            for images, labels in loader:
                _, logits = network(images.to(device))
                loss = F.cross_entropy(logits, labels.to(device))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
    network.eval()
    return network.requires_grad_(False)


@torch.no_grad()
def features_of_real(
    network: nn.Module, loader: DataLoader[Any], count: int, device: torch.device
) -> Tensor:
    """The features of up to `count` real pictures."""
    features = []
    for images, _ in loader:
        features.append(network(images.to(device))[0])
        if sum(map(len, features)) >= count:
            break
    return torch.cat(features)[:count]


def frechet_distance(one: Tensor, other: Tensor) -> float:
    """Distance of two sets of features as if both were Gaussian (Heusel 2017, arXiv:1706.08500).

    |m1 - m2|^2 + tr(C1) + tr(C2) - 2 tr((C1 C2)^(1/2)). The last trace is the sum of the square
    roots of the eigenvalues of C1^(1/2) C2 C1^(1/2), a symmetric matrix: no complex numbers.
    It depends on the number of samples: compare only distances of equally many.
    """
    one, other = one.double().cpu(), other.double().cpu()
    covariance1, covariance2 = torch.cov(one.T), torch.cov(other.T)
    values, vectors = torch.linalg.eigh(covariance1)
    root1 = vectors @ torch.diag(values.clamp(min=0).sqrt()) @ vectors.T
    cross = torch.linalg.eigvalsh(root1 @ covariance2 @ root1).clamp(min=0).sqrt().sum()
    means = (one.mean(dim=0) - other.mean(dim=0)).square().sum()
    return float(means + covariance1.trace() + covariance2.trace() - 2 * cross)


# ---- averaged weights ---------------------------------------------------------------------------


Tensors = tuple[Tensor, ...] | list[Tensor]


def warmed_up_average(decay: float) -> Callable[[Tensors, Tensors, Tensor | int], None]:
    """An exponential average whose decay rises from 2/11 to `decay` as updates come in.

    With the full decay from the start, the average would hold on to the random first weights for
    thousands of steps. (1 + n) / (10 + n) is the rule of TensorFlow's ExponentialMovingAverage.
    """

    def average(averaged: Tensors, current: Tensors, updates: Tensor | int) -> None:
        decay_now = torch.clamp((1 + torch.as_tensor(updates)) / (10 + updates), max=decay)
        for old, new in zip(averaged, current, strict=True):
            if old.is_floating_point():
                old.lerp_(new, 1 - decay_now)
            else:  # counters have no average
                old.copy_(new)

    return average


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
    device = torch.device(settings.device)
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)  # CUDA's streams too

    out = Path(settings.out or tempfile.mkdtemp(prefix="flow-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_set, val_set, image_channels, classes = load_images(settings)
    sampler = ResumableSampler(len(train_set), settings.seed)
    train_loader: DataLoader[Any] = DataLoader(
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
    val_loader: DataLoader[Any] = DataLoader(
        val_set,
        batch_size=settings.batch_size,
        num_workers=settings.workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    network = feature_network(settings, train_set, device)
    real = features_of_real(network, val_loader, settings.eval_samples, device)
    # The same noise and the same classes at every evaluation: what changes is the model.
    fixed = torch.Generator().manual_seed(0)
    shape = (settings.eval_samples, image_channels, settings.image_size, settings.image_size)
    fixed_noise = torch.randn(shape, generator=fixed).to(device)
    fixed_labels = (torch.arange(settings.eval_samples) % classes).to(device)

    model = DiT(image_channels, classes, settings).to(device)
    # Decay only what multiplies; norms, biases and the class embedding are left alone.
    named = list(model.named_parameters())
    decayed = [p for name, p in named if p.ndim >= 2 and name != "label.weight"]
    kept = [p for name, p in named if p.ndim < 2 or name == "label.weight"]
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": kept, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, weight_decay=settings.weight_decay)
    # A constant rate, as in DiT: the averaged weights do what decay would do. DiT needs no warm-up,
    # thanks to its zero gates; the few steps here are for Adam, whose first estimates are rough.
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / settings.warmup_steps)
    )
    ema = AveragedModel(model, multi_avg_fn=warmed_up_average(settings.ema_decay), use_buffers=True)
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    best_distance = math.inf
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
        best_distance = state["best_distance"]
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "best_distance": best_distance,
            "model": model.state_dict(),
            "ema": ema.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "sampler": sampler.state_dict(),
            "random": get_random_state(),
            "settings": asdict(settings),
        }

    def evaluate(weights: nn.Module) -> tuple[float, float]:
        """Fréchet distance and the share of samples in which the classifier sees their class."""
        samples = []
        for noise, labels in zip(
            fixed_noise.split(settings.batch_size),
            fixed_labels.split(settings.batch_size),
            strict=True,
        ):
            samples.append(sample(weights, noise, labels, model.null, settings))
        images = torch.cat(samples)
        grid = images[: 10 * classes].clamp(-1, 1) * 0.5 + 0.5
        save_image(grid, out / f"samples_{step:09d}.png", nrow=10)
        features, logits = network(images)
        agreement = (logits.argmax(dim=1) == fixed_labels).float().mean().item()
        return frechet_distance(features, real), agreement

    while step < settings.steps:
        model.train()
        for images, labels in train_loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            if settings.flip:
                mirrored = torch.rand(len(images), 1, 1, 1, device=device) < 0.5
                images = torch.where(mirrored, images.flip(-1), images)
            # One model learns both with and without the class.
            dropped = torch.rand(len(images), device=device) < settings.drop_label
            labels = torch.where(dropped, model.null, labels)
            t = draw_times(len(images), settings, device)
            on_path, target = point_on_path(images, torch.randn_like(images), t)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                prediction = model(on_path, t, labels)
            loss = F.mse_loss(prediction, target)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)  # clip real gradients, not scaled ones
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= scale:  # else the gradients overflowed: no step was taken
                scheduler.step()
                ema.update_parameters(model)
            step += 1
            sampler.position += settings.batch_size

            if step % settings.log_every == 0:  # reading the loss waits for the device
                log(step, {"train_loss": loss.item()})
                print(f"\rstep {step}/{settings.steps} loss {loss.item():.4f}", end="", flush=True)
            if step % settings.eval_every == 0 and step < settings.steps:
                distance, agreement = evaluate(ema)
                log(step, {"frechet": distance, "agreement": agreement})
                if distance < best_distance:
                    best_distance = distance
                    save_atomically(snapshot(), out / "best.pt")
            if step % settings.checkpoint_every == 0:
                save_step(snapshot(), out, settings.keep)
            if step == settings.steps:
                break
        else:  # the epoch ran to its end
            sampler.epoch += 1
            sampler.position = 0

    save_step(snapshot(), out, settings.keep)
    raw_distance, _ = evaluate(model)
    distance, agreement = evaluate(ema)  # last: its grid is the one that stays
    print(f"\nfrechet:          {distance:.2f}")
    print(f"without_ema:      {raw_distance:.2f}")
    print(f"class_agreement:  {agreement:.4f}")
    print("target:           frechet <= 20")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
