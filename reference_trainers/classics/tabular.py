"""A table done right: clean it, balance it, stop in time, and say what to try next.

When to use    Columns of numbers and categories, some empty, classes of unequal size. A neural
               network is not always the best choice for a table; this is how to give it a fair try.
Source         Ng, Machine Learning Yearning (bias and variance, what to try next); Prechelt 1998
               (early stopping); Cui et al. 2019 (arXiv:1901.05555) on class weights; Gorishniy et
               al. 2021 (arXiv:2106.11959): a tuned MLP or ResNet is a strong baseline for tables.
Data           scikit-learn's breast cancer table: 569 rows, skewed areas, 37 % malignant. It is
               complete and has no categories, so two things are added, both from the data itself:
               a tenth of the cells is emptied (seeded), and the radius in whole millimetres serves
               as a category with rare values.
Expected       1 core: balanced accuracy above 0.92 on the test split after about 10 s.
Full scale     --data table.csv --target column --width 512 --epochs 100 --batch-size 256: a file
               with a header. Columns in which every filled cell is a number are numbers, the rest
               are categories; empty cells are missing values.
"""

import argparse
import copy
import csv
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # a CSV file; empty: scikit-learn's breast cancer table
    target: str = "target"  # the column to predict
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 60
    steps: int = 0  # above 0: stop after so many steps
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    batch_size: int = 32
    rare: int = 15  # a category seen less often in training is merged with the other rare ones
    skew: float = 1.0  # columns more skewed than this get a logarithm
    balance: Literal["weights", "sampler", "none"] = "weights"
    width: int = 64
    dropout: float = 0.2
    lr: float = 1e-3
    weight_decay: float = 1e-2
    patience: int = 10  # epochs without a better validation loss
    checkpoint_every: int = 50
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


# ---- the table ----------------------------------------------------------------------------------

Columns = dict[str, list[str]]  # a CSV file, column by column; an empty cell is ""


def read_table(settings: Settings) -> tuple[Columns, list[str]]:
    if settings.data:
        with open(settings.data, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        columns = {name: [row[name].strip() for row in rows] for name in rows[0]}
        target = columns.pop(settings.target)
        return columns, target

    cancer = load_breast_cancer()
    holes = np.random.default_rng(0).random(cancer.data.shape) < 0.1
    columns = {}
    for index, name in enumerate(cancer.feature_names):
        values = cancer.data[:, index]
        cells = zip(values, holes[:, index], strict=True)
        columns[str(name)] = ["" if hole else f"{value:g}" for value, hole in cells]
    columns["size class"] = [f"{radius:.0f} mm" for radius in cancer.data[:, 0]]
    return columns, [str(cancer.target_names[label]) for label in cancer.target]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class Preprocessor:
    """Everything that is learned from the data before training: from the training rows alone.

    Medians, means, spreads and the lists of categories of all rows would carry what is known about
    validation and test rows into training, and make both look better than new rows will be.
    """

    def __init__(self, columns: Columns, train: list[int], settings: Settings) -> None:
        self.numbers: dict[str, tuple[float, bool, float, float]] = {}
        self.indicators: list[str] = []
        self.categories: dict[str, list[str]] = {}
        for name, cells in columns.items():
            seen = [cells[row] for row in train]
            filled = [cell for cell in seen if cell != ""]
            if any(cell == "" for cell in seen):
                self.indicators.append(name)
            if all(is_number(cell) for cell in filled):
                values = np.array([float(cell) for cell in filled])
                # The median: a mean would follow the outliers that make imputation hard.
                median = float(np.median(values))
                spread = values.std() + 1e-12
                skew = float((((values - values.mean()) / spread) ** 3).mean())
                # A long tail to the right, as areas, prices and counts have it, would leave nearly
                # all rows in a corner of the standardised range. log1p takes zeros.
                log = bool(skew > settings.skew and values.min() >= 0)
                values = np.log1p(values) if log else values
                self.numbers[name] = (median, log, float(values.mean()), float(values.std()))
            else:
                # A category with a handful of rows teaches only noise; together they make one.
                counts = Counter(filled)
                common = [value for value, count in counts.items() if count >= settings.rare]
                self.categories[name] = sorted(common)

    def __call__(self, columns: Columns) -> np.ndarray[Any, Any]:
        features = []
        for name, (median, log, mean, std) in self.numbers.items():
            values = np.array([float(cell) if cell != "" else median for cell in columns[name]])
            values = np.log1p(np.maximum(values, 0)) if log else values
            features.append((values - mean) / (std + 1e-12))
        for name in self.indicators:
            # That a cell is empty may itself say something (the doctor saw no need to measure). The
            # imputed value alone would hide it.
            features.append(np.array([float(cell == "") for cell in columns[name]]))
        for name, common in self.categories.items():
            # One column for each common value, one for all others, unseen ones included.
            for value in common:
                features.append(np.array([float(cell == value) for cell in columns[name]]))
            others = [float(cell != "" and cell not in common) for cell in columns[name]]
            features.append(np.array(others))
        return np.stack(features, axis=1).astype(np.float32)


class ResumableSampler(Sampler[int]):
    """A random order that follows from (seed, epoch) and can start inside an epoch.

    With `weights`, rows are drawn with replacement, in proportion to their weight. `position`
    counts rows that were trained on; the training loop moves it.
    """

    def __init__(self, length: int, seed: int, weights: Tensor | None = None) -> None:
        self.length = length
        self.seed = seed
        self.weights = weights
        self.epoch = 0
        self.position = 0

    def __len__(self) -> int:
        return self.length - self.position

    def __iter__(self) -> Iterator[int]:
        stream = torch.Generator().manual_seed(self.seed + self.epoch)
        if self.weights is None:
            order = torch.randperm(self.length, generator=stream)
        else:
            order = torch.multinomial(self.weights, self.length, True, generator=stream)
        yield from order[self.position :].tolist()

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed = state["seed"]
        self.epoch = state["epoch"]
        self.position = state["position"]


# ---- judging ------------------------------------------------------------------------------------


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor, y: Tensor, classes: int) -> tuple[float, float]:
    """Loss, and balanced accuracy: the mean over the classes of how often each is recognised.

    With nine in ten rows of one class, always answering that class is right nine times in ten, and
    has a balanced accuracy of one half. The loss is the plain one, without class weights.
    """
    model.eval()
    logits = model(x)
    right = (logits.argmax(dim=1) == y).float()
    recalls = [right[y == label].mean() for label in range(classes) if (y == label).any()]
    return F.cross_entropy(logits, y).item(), torch.stack(recalls).mean().item()


def what_next(train_error: float, val_error: float, goal_error: float) -> str:
    """Which of the two errors is the larger, and what is known to help against it.

    Bias is what is missing on the training data already; variance is what gets lost between the
    training and the validation data. Both suggestions would be wrong for the other kind.
    """
    bias, variance = max(0.0, train_error - goal_error), max(0.0, val_error - train_error)
    if max(bias, variance) < 0.01:
        return "both small: collect harder validation data, or stop here"
    if bias > variance:
        return "high bias: more features, more parameters, less regularisation, longer training"
    return "high variance: more data, fewer features, fewer parameters, more regularisation"


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="tabular-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    columns, target = read_table(settings)
    names = sorted(set(target))
    labels = [names.index(name) for name in target]
    # Three parts: training; validation, on which the epoch is chosen; test, looked at once. One
    # fixed split for every seed, with every class in its share of each part.
    rows = list(range(len(labels)))
    rest, test = train_test_split(rows, test_size=0.2, random_state=0, stratify=labels)
    train, val = train_test_split(
        rest, test_size=0.25, random_state=0, stratify=[labels[row] for row in rest]
    )
    prepare = Preprocessor(columns, train, settings)  # the training rows alone
    features = torch.from_numpy(prepare(columns))
    all_labels = torch.tensor(labels)
    x_train, y_train = features[train].to(device), all_labels[train].to(device)
    x_val, y_val = features[val].to(device), all_labels[val].to(device)
    x_test, y_test = features[test].to(device), all_labels[test].to(device)

    # Two ways to make a rare class count, one at a time: both at once would count it twice. Weights
    # in the loss are the simpler one; a sampler is better when a batch would often contain none.
    counts = torch.bincount(all_labels[train], minlength=len(names)).float()
    class_weights = counts.sum() / (len(names) * counts)
    loss_weights = class_weights.to(device) if settings.balance == "weights" else None
    row_weights = class_weights[all_labels[train]] if settings.balance == "sampler" else None
    sampler = ResumableSampler(len(train), settings.seed, row_weights)
    # The whole table lies in memory, on the device: no workers, no pinning.
    train_loader = DataLoader(
        TensorDataset(x_train, y_train),
        batch_size=settings.batch_size,
        sampler=sampler,
        drop_last=True,  # a last batch of one row would break batch norm
        generator=torch.Generator(),  # its own: starting an epoch must not move the global stream
    )
    total_steps = settings.steps or settings.epochs * (len(train) // settings.batch_size)

    model = nn.Sequential(
        nn.Linear(features.shape[1], settings.width, bias=False),  # batch norm has its own shift
        nn.BatchNorm1d(settings.width),
        nn.ReLU(),
        nn.Dropout(settings.dropout),
        nn.Linear(settings.width, settings.width, bias=False),
        nn.BatchNorm1d(settings.width),
        nn.ReLU(),
        nn.Dropout(settings.dropout),
        nn.Linear(settings.width, len(names)),
    ).to(device)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    # AdamW, not Adam with an L2 term: there the penalty would be divided by the gradient's size and
    # hardly touch the weights with large gradients (Loshchilov and Hutter 2017, arXiv:1711.05101).
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
        for x, y in train_loader:
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                loss = F.cross_entropy(model(x), y, weight=loss_weights)
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
        val_loss, val_accuracy = evaluate(model, x_val, y_val, len(names))
        log(step, {"val_loss": val_loss, "val_balanced_accuracy": val_accuracy})
        # Early stopping. A copy: state_dict() alone hands out the weights themselves, and the
        # "best" ones would go on being trained.
        waited += 1
        if val_loss < best_loss:
            best_loss, waited = val_loss, 0
            best_weights = copy.deepcopy(model.state_dict())
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    model.load_state_dict(best_weights)
    _, train_accuracy = evaluate(model, x_train, y_train, len(names))
    _, val_accuracy = evaluate(model, x_val, y_val, len(names))
    _, test_accuracy = evaluate(model, x_test, y_test, len(names))
    logs = sum(log for _, log, _, _ in prepare.numbers.values())
    print(f"\nlog_columns:      {logs}")
    print(f"missing_columns:  {len(prepare.indicators)}")
    print(f"train_accuracy:   {train_accuracy:.4f}")
    print(f"val_accuracy:     {val_accuracy:.4f}")
    print(f"test_accuracy:    {test_accuracy:.4f}")
    print(f"try_next:         {what_next(1 - train_accuracy, 1 - val_accuracy, goal_error=0.02)}")
    print("target:           test_accuracy >= 0.92")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
