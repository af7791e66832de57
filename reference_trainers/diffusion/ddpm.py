"""Train a denoising diffusion model with classifier-free guidance, sampled by DDIM.

When to use    To generate pictures (or any continuous data) of a wanted class, with quality before
               sampling speed. Flow matching (flow_matching.py) is the simpler sibling; this one
               has the larger literature.
Source         DDPM (Ho et al. 2020, arXiv:2006.11239): linear schedule, plain squared error on the
               noise. Improved DDPM (Nichol and Dhariwal 2021, arXiv:2102.09672): cosine schedule.
               ADM (Dhariwal and Nichol 2021, arXiv:2105.05233): the U-Net's blocks. v-prediction
               (Salimans and Ho 2022, arXiv:2202.00512). Guidance (Ho and Salimans 2022,
               arXiv:2207.12598). DDIM (Song et al. 2020, arXiv:2010.02502).
Expected       scikit-learn's 8x8 digits, 1 core: a Fréchet distance below 20 in under a minute,
               and nearly every sample is seen as the digit that was asked for.
Full scale     --data /imagenet --image-size 64 --channels 192 --device cuda --amp --batch-size 2048
               --lr 1e-4 --ema-decay 0.9999 --warmup-steps 5000 --steps 500000 --flip
               --eval-every 10000 --eval-samples 10000 --sample-steps 50 --workers 16 (a folder
               with train/<class>/*.jpg and val/<class>/*.jpg). At high resolution shift the
               schedule to more noise or use v-prediction: neighbouring pixels average noise away
               (Hoogeboom et al. 2023, arXiv:2301.11093).
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
    steps: int = 260
    seed: int = 0
    out: str = ""  # where checkpoints, logs and sample grids go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    flip: bool = False  # mirror half the pictures: right for photographs, wrong for digits
    schedule: Literal["linear", "cosine"] = "cosine"
    predict: Literal["noise", "velocity"] = "velocity"
    timesteps: int = 1000
    drop_label: float = 0.1  # share of samples trained without their class (Ho and Salimans)
    guidance: float = 1.5  # 1: plain conditional sampling; more: more typical, less varied
    sample_steps: int = 12  # 50 and more at full scale
    channels: int = 24
    batch_size: int = 64  # more is better here: 256 to 2048 at full scale
    lr: float = 1e-3  # 1e-4 to 2e-4 at full scale
    warmup_steps: int = 50
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    ema_decay: float = 0.99  # averages over about 1 / (1 - decay) steps; 0.9999 for long runs
    eval_every: int = 200  # steps between sample grids and Fréchet distances
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


# ---- diffusion ----------------------------------------------------------------------------------


class Diffusion:
    """The forward process x_t = alpha_t * x_0 + sigma_t * noise, and the way back.

    alpha^2 + sigma^2 = 1 at every t ("variance preserving").
    """

    def __init__(self, settings: Settings, device: torch.device) -> None:
        steps = settings.timesteps
        self.predict = settings.predict
        if settings.schedule == "linear":
            # Ho et al. chose these ends for 1000 steps; for another number, keep the sum.
            scale = 1000 / steps
            betas = torch.linspace(1e-4 * scale, 0.02 * scale, steps, dtype=torch.float64)
        else:
            # The kept signal alpha^2 falls as a squared cosine; the offset 0.008 keeps the first
            # betas from being tiny, the bound 0.999 the last from being 1 (Nichol and Dhariwal).
            t = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
            kept = torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
            betas = (1 - kept[1:] / kept[:-1]).clamp(max=0.999)
        # float64 up to here: a product of 1000 factors near 1 loses digits in float32.
        alpha_squared = torch.cumprod(1 - betas, dim=0)
        self.alpha = alpha_squared.sqrt().float().to(device)
        self.sigma = (1 - alpha_squared).sqrt().float().to(device)

    def coefficients(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """alpha and sigma of each sample's own t, shaped to multiply pictures."""
        return self.alpha[t].view(-1, 1, 1, 1), self.sigma[t].view(-1, 1, 1, 1)

    def noisy(self, images: Tensor, noise: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """x_t, and what the network shall say about it.

        The noise is easy to see where there is much of it, and hopeless to tell from the picture's
        own detail where there is little; there the velocity alpha * noise - sigma * x_0 asks for
        the picture instead. It stays a fair question at every noise level.
        """
        alpha, sigma = self.coefficients(t)
        x_t = alpha * images + sigma * noise
        target = noise if self.predict == "noise" else alpha * noise - sigma * images
        return x_t, target

    def clean(self, x_t: Tensor, prediction: Tensor, t: Tensor) -> Tensor:
        """The picture x_0 that a prediction implies."""
        alpha, sigma = self.coefficients(t)
        if self.predict == "noise":
            return (x_t - sigma * prediction) / alpha
        return alpha * x_t - sigma * prediction

    @torch.no_grad()
    def sample(
        self, model: nn.Module, noise: Tensor, labels: Tensor, null: int, settings: Settings
    ) -> Tensor:
        """DDIM: a deterministic walk from noise to picture in few of the trained steps."""
        model.eval()
        # Spaced from the end backwards, so that sampling begins at the very t, T - 1, whose x_t is
        # (nearly) pure noise (Lin et al. 2023, arXiv:2305.08891).
        times = torch.arange(settings.timesteps, 0, -settings.timesteps / settings.sample_steps)
        times = times.round().long() - 1
        no_label = torch.full_like(labels, null)
        x = noise
        for i, time_now in enumerate(times.tolist()):
            t = torch.full((len(x),), time_now, device=x.device)
            # With and without the class in one batch; then further along the difference.
            both = model(torch.cat([x, x]), t.repeat(2), torch.cat([labels, no_label]))
            with_label, without = both.chunk(2)
            prediction = without + settings.guidance * (with_label - without)
            # Guidance pushes pixels out of their range; clamp the picture, then recompute the
            # noise that belongs to it.
            clean = self.clean(x, prediction, t).clamp(-1, 1)
            if i + 1 == len(times):
                return clean
            alpha, sigma = self.coefficients(t)
            direction = (x - alpha * clean) / sigma
            alpha, sigma = self.coefficients(torch.full_like(t, int(times[i + 1])))
            x = alpha * clean + sigma * direction
        return x


# ---- model: a U-Net -----------------------------------------------------------------------------


def wave_features(t: Tensor, width: int) -> Tensor:
    """Sines and cosines of t at frequencies from 1 to 1 / 10000, as a transformer's positions."""
    half = width // 2
    frequencies = torch.exp(-math.log(10_000) * torch.arange(half, device=t.device) / half)
    angles = t[:, None].float() * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=1)


class Block(nn.Module):
    """Norm, SiLU, convolution, twice, around a skip; time and class scale and shift the middle."""

    def __init__(self, inputs: int, outputs: int, condition: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.modulate = nn.Linear(condition, 2 * outputs)
        self.norm2 = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)
        nn.init.zeros_(self.conv2.weight)  # each block starts as its skip (ADM)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.modulate(condition)[:, :, None, None].chunk(2, dim=1)
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.conv2(F.silu(self.norm2(y) * (1 + scale) + shift))
        out: Tensor = self.skip(x) + y
        return out


class SelfAttention(nn.Module):
    """Every place looks at every other; at the lowest resolution, where that is cheap."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        # (batch, 3 * channels, places) to three of (batch, heads, places, channels of a head)
        qkv = self.qkv(self.norm(x)).view(batch, 3, self.heads, channels // self.heads, -1)
        q, k, v = qkv.transpose(-1, -2).unbind(dim=1)
        y = F.scaled_dot_product_attention(q, k, v)
        out: Tensor = x + self.out(y.transpose(-1, -2).reshape(batch, channels, height, width))
        return out


class UNet(nn.Module):
    """Down to half the resolution and back, with the way down's features joined in on the way up.

    At full scale: four resolutions of this, three blocks each, attention at 32, 16 and 8 pixels.
    """

    def __init__(self, image_channels: int, classes: int, channels: int) -> None:
        super().__init__()
        condition = 4 * channels
        self.channels = channels
        # One row more than there are classes: "no class" is learned like any other. Class 0, or a
        # vector of zeros, would mean something else already.
        self.null = classes
        self.label = nn.Embedding(classes + 1, condition)
        self.time = nn.Sequential(
            nn.Linear(channels, condition), nn.SiLU(), nn.Linear(condition, condition)
        )
        self.stem = nn.Conv2d(image_channels, channels, 3, padding=1)
        self.down1 = Block(channels, channels, condition)
        self.shrink = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.down2 = Block(channels, 2 * channels, condition)
        self.attention = SelfAttention(2 * channels, heads=4)
        self.middle = Block(2 * channels, 2 * channels, condition)
        self.up2 = Block(4 * channels, 2 * channels, condition)
        self.grow = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.up1 = Block(2 * channels, channels, condition)
        self.norm = nn.GroupNorm(8, channels)
        self.out = nn.Conv2d(channels, image_channels, 3, padding=1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor, t: Tensor, labels: Tensor) -> Tensor:
        condition = F.silu(self.time(wave_features(t, self.channels)) + self.label(labels))
        fine = self.down1(self.stem(x), condition)
        coarse = self.down2(self.shrink(fine), condition)
        y = self.middle(self.attention(coarse), condition)
        y = self.up2(torch.cat([y, coarse], dim=1), condition)
        y = self.grow(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        y = self.up1(torch.cat([y, fine], dim=1), condition)
        out: Tensor = self.out(F.silu(self.norm(y))).float()
        return out


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="ddpm-"))
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

    model = UNet(image_channels, classes, settings.channels).to(device)
    diffusion = Diffusion(settings, device)
    # Decay only what multiplies; norms, biases and the class embedding are left alone.
    named = list(model.named_parameters())
    decayed = [p for name, p in named if p.ndim >= 2 and name != "label.weight"]
    kept = [p for name, p in named if p.ndim < 2 or name == "label.weight"]
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": kept, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, weight_decay=settings.weight_decay)
    # A constant rate: the averaged weights do what decay would do. The short warm-up is that of
    # Ho et al.; ADM goes without.
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
            samples.append(diffusion.sample(weights, noise, labels, model.null, settings))
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
            t = torch.randint(0, settings.timesteps, (len(images),), device=device)
            noisy, target = diffusion.noisy(images, torch.randn_like(images), t)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                prediction = model(noisy, t, labels)
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
