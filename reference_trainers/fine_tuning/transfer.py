"""Fine-tune a pretrained image network on few labels: head only, gradual, or layer by layer.

When to use    A new classification task with tens to thousands of labelled pictures, and a network
               trained on many more of a related kind.
Source         Head only and beyond: Yosinski et al. 2014 (arXiv:1411.1792). Gradual unfreezing and
               smaller rates further down: ULMFiT (Howard and Ruder 2018, arXiv:1801.06146), section
               3.2. Layer-wise decay as a power: ELECTRA (arXiv:2003.10555), BEiT
               (arXiv:2106.08254). Kolesnikov et al. 2019 (BiT, arXiv:1912.11370) for what matters
               at scale.
Expected       A small ResNet learns to tell scikit-learn's digits apart; fine-tuned on 40 other
               pictures to tell odd from even, 1 core: above 93 % of the rest right, in half a
               minute. --no-pretrained shows what those 40 can teach alone.
Full scale     --data /flowers --device cuda --amp --epochs 20 --batch-size 64 --lr 1e-3
               --strategy gradual --workers 16 (a folder with train/<class>/*.jpg and
               val/<class>/*.jpg; the network is torchvision's ResNet-50 with its ImageNet weights).
               Few labels or a close task: head. Many labels: layerwise.
Resume         Checkpoints go to --out. Start the same command again with --resume: the run goes
               on where the newest checkpoint stands, and on a CPU its losses are the same to the
               last bit as if it had never been stopped.
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
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
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
    epochs: int = 60
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    workers: int = 0  # in-memory digits need none; pictures on disk: about the number of cores
    pretrained: bool = True  # --no-pretrained trains the same network from scratch, to compare
    pretrain_epochs: int = 10  # of the stand-in for a downloaded network
    strategy: Literal["head", "gradual", "layerwise"] = "gradual"
    layer_decay: float = 0.65  # each stage further down learns by this factor slower
    shots: int = 4  # training pictures of each digit
    batch_size: int = 16
    lr: float = 5e-3  # of the head, which starts from nothing; the layers below get less
    weight_decay: float = 0.01
    warmup_share: float = 0.1  # of the run: until the head knows something, its errors are noise
    clip_norm: float = 1.0
    ema_decay: float = 0.95  # averages over about 1 / (1 - decay) steps: a small part of the run
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


def load_data(settings: Settings) -> tuple[Augmented, Dataset[tuple[Tensor, ...]], int]:
    """The training set, the validation set (never augmented) and the number of classes."""
    if settings.data:
        # The statistics that the ImageNet weights were trained with, whatever the new pictures.
        normalize = v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), normalize]
        augment = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *to_float])
        center = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *to_float])
        train_folder = ImageFolder(os.path.join(settings.data, "train"))
        val_folder = ImageFolder(os.path.join(settings.data, "val"), transform=center)
        return Augmented(train_folder, augment), val_folder, len(train_folder.classes)

    # Even or odd: the first `shots` of each digit to train on, all others to validate.
    _, (images, digits) = load_source_and_target()
    labels = digits % 2
    train = torch.cat([(digits == digit).nonzero()[: settings.shots, 0] for digit in range(10)])
    held_out = torch.ones(len(labels), dtype=torch.bool)
    held_out[train] = False
    samples = list(zip(images[train], labels[train].tolist(), strict=True))
    shift = v2.RandomCrop(8, padding=1)  # by one pixel a digit stays what it is
    return Augmented(samples, shift), TensorDataset(images[held_out], labels[held_out]), 2


def load_source_and_target() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """scikit-learn's digits, scaled to 0..1: two thirds to pretrain on, the rest for the new task.

    No picture is in both. What pretraining has seen would be no test of the new task.
    """
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(digits.target)
    source, target = train_test_split(
        np.arange(len(labels)), test_size=1 / 3, random_state=0, stratify=digits.target
    )
    return (images[source], labels[source]), (images[target], labels[target])


# ---- model --------------------------------------------------------------------------------------


class FineTuned(nn.Module):
    """Pretrained stages, bottom first, and a new head.

    The statistics of the batch norms stay those of pretraining: a handful of new pictures would
    measure them badly. `requires_grad = False` does not stop them (they are buffers), and `.eval()`
    on them lasts only until somebody calls `train()` on the model; so `train()` itself keeps them
    in evaluation mode. Dropout still goes with the mode.
    """

    def __init__(self, stages: list[nn.Module], features: int, classes: int) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(features, classes)
        # A head at zero says "all classes alike": its first errors are small, and nothing random
        # flows back into the pretrained stages (BiT).
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.freeze_statistics = True

    def train(self, mode: bool = True) -> "FineTuned":
        super().train(mode)
        if self.freeze_statistics:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        out: Tensor = self.head(self.dropout(x.mean(dim=(2, 3))))
        return out

    def train_only_top(self, count: int) -> None:
        """Let the head and the `count` topmost stages learn, and nothing below them.

        Parameters without a gradient are skipped by the optimizer altogether, weight decay and all.
        """
        for depth, stage in enumerate(reversed(self.stages)):
            stage.requires_grad_(depth < count)


def digit_stages() -> list[nn.Module]:
    def shrink(inputs: int, outputs: int) -> nn.Sequential:
        # No bias before a batch norm, whose own shift would cancel it.
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride=2, bias=False), nn.BatchNorm2d(outputs)
        )

    stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
    return [
        stem,
        BasicBlock(16, 16),
        BasicBlock(16, 32, stride=2, downsample=shrink(16, 32)),
        BasicBlock(32, 64, stride=2, downsample=shrink(32, 64)),
    ]


def pretrain_on_digits(stages: list[nn.Module], epochs: int, device: torch.device) -> None:
    """Stand-in for a downloaded network: teach the stages to tell ten digits apart."""
    source, _ = load_source_and_target()
    loader = DataLoader(TensorDataset(*source), batch_size=64, shuffle=True, drop_last=True)
    model = FineTuned(stages, features=64, classes=10).to(device)
    model.freeze_statistics = False
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    # Down to zero at the end, as those who offer weights do: features still in motion are poor.
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    shift = v2.RandomCrop(8, padding=1)  # the same for a whole batch: enough, for it to vary
    for _ in range(epochs):
        for pictures, digits in loader:
            loss = F.cross_entropy(model(shift(pictures).to(device)), digits.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()


def build_model(settings: Settings, classes: int, device: torch.device, *, load: bool) -> FineTuned:
    """The network; with `load`, its stages as pretraining left them."""
    if settings.data:
        full = resnet50(weights="DEFAULT" if load else None)
        stem = nn.Sequential(full.conv1, full.bn1, full.relu, full.maxpool)
        stages = [stem, full.layer1, full.layer2, full.layer3, full.layer4]
        model = FineTuned(stages, full.fc.in_features, classes)
    else:
        stages = digit_stages()
        if load:
            pretrain_on_digits(stages, settings.pretrain_epochs, device)
        model = FineTuned(stages, features=64, classes=classes)
    model.freeze_statistics = settings.pretrained  # from scratch there is nothing to keep
    return model


def learning_stages(step: int, total_steps: int, stages: int, settings: Settings) -> int:
    """How many stages below the head learn at this step."""
    if not settings.pretrained or settings.strategy == "layerwise":
        return stages
    if settings.strategy == "head":
        return 0
    # One more from the top at equal intervals, all of them in the last fifth. ULMFiT takes one
    # epoch each; with few pictures an epoch is only a few steps.
    return min(stages, stages * step * 5 // (total_steps * 4))


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
    return lambda *_: None


# ---- training -----------------------------------------------------------------------------------


def main() -> None:
    settings = read_settings()
    started = time.perf_counter()
    device = torch.device(settings.device)
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)  # CUDA's streams too

    out = Path(settings.out or tempfile.mkdtemp(prefix="transfer-"))
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
        batch_size=4 * settings.batch_size,  # nothing is kept for a backward pass
        num_workers=settings.workers,
        persistent_workers=settings.workers > 0,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    total_steps = settings.steps or settings.epochs * (len(train_set) // settings.batch_size)

    # The model goes to its device first: the optimizer keeps references to the parameters.
    restoring = settings.resume and bool(find_checkpoints(out))  # then all weights come from there
    load = settings.pretrained and not restoring
    model = build_model(settings, classes, device, load=load).to(device)
    # One group for each stage and kind of parameter. All are in the optimizer from the start, also
    # those that learn only later: a new optimizer at each thaw would forget the others' moments.
    groups: list[dict[str, Any]] = []
    for depth, layer in enumerate([model.head, *reversed(model.stages)]):
        lr = settings.lr
        if settings.pretrained:
            lr *= settings.layer_decay**depth  # general features, at the bottom, need the least
        parameters = list(layer.parameters())
        weights = [p for p in parameters if p.ndim >= 2]
        others = [p for p in parameters if p.ndim < 2]  # norms and biases: no decay
        groups.append({"params": weights, "lr": lr})
        groups.append({"params": others, "lr": lr, "weight_decay": 0.0})
    optimizer = torch.optim.AdamW(groups, lr=settings.lr, weight_decay=settings.weight_decay)
    warmup_steps = max(1, round(settings.warmup_share * total_steps))

    def lr_share(step: int) -> float:
        """Linear warm-up, then linear decay to zero (ULMFiT's slanted triangle)."""
        rising = (step + 1) / warmup_steps
        falling = (total_steps - step) / max(1, total_steps - warmup_steps)
        return max(0.0, min(rising, falling, 1.0))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_share)
    ema = AveragedModel(
        model, multi_avg_fn=get_ema_multi_avg_fn(settings.ema_decay), use_buffers=True
    )
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    best_accuracy = 0.0
    if restoring:
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
            model.train_only_top(learning_stages(step, total_steps, len(model.stages), settings))
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                loss = F.cross_entropy(model(images), labels)
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
    val_loss, val_accuracy = evaluate(ema, val_loader, device)
    _, raw_accuracy = evaluate(model, val_loader, device)
    print(f"\nval_accuracy:     {val_accuracy:.4f}")
    print(f"val_loss:         {val_loss:.4f}")
    print(f"without_ema:      {raw_accuracy:.4f}")
    print("target:           val_accuracy >= 0.93")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
