"""Train in less memory: half precision, checkpointed activations, accumulated gradients.

When to use    The model trains, but not at the size or batch that is wanted: memory is the limit.
               Take the measures in the order of the flags: each costs more time.
Source         Mixed precision and loss scaling (Micikevicius et al. 2017, arXiv:1710.03740),
               bfloat16 (Kalamkar et al. 2019, arXiv:1905.12322), activation checkpointing (Chen et
               al. 2016, arXiv:1604.06174), 8-bit optimizers (Dettmers et al. 2021,
               arXiv:2110.02861). Weighting accumulated losses by tokens: the bug that most trainers
               shared until October 2024 (unsloth.ai/blog/gradient).
Expected       A byte-level GPT on paragraphs of the standard library's docstrings, padded to equal
               lengths, 1 core: below 3.9 bits a token in under a minute.
Full scale     --data DIR --device cuda --amp bf16 --optimizer fused --checkpoint-activations
               --width 2048 --layers 24 --heads 16 --context 2048 --micro-batch 4 --accumulate 64
               --lr 3e-4 --warmup-steps 2000 (DIR holds train.jsonl and val.jsonl with a line
               {"text": "..."} for each document). What each measure buys, for a model of N
               parameters with AdamW: float32 needs 16 N bytes besides activations; autocast halves
               activations and leaves the 16 N; --optimizer 8bit makes them 10 N, adafactor 8 N;
               --checkpoint-activations keeps one tensor a block and costs a third more time;
               --accumulate makes the memory of a step that of one micro-batch.
Resume         Checkpoints go to --out. Start the same command again with --resume: the run goes
               on where the newest checkpoint stands, and on a CPU its losses are the same to the
               last bit as if it had never been stopped.
"""

import argparse
import ast
import csv
import importlib
import json
import math
import os
import random
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Sampler

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train.jsonl and val.jsonl; empty: Python's docstrings
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 1
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: Literal["none", "bf16", "fp16"] = "none"  # bf16 wherever the device has it
    accumulate: int = 2  # micro-batches a step
    optimizer: Literal["adamw", "fused", "8bit", "adafactor"] = "adamw"
    checkpoint_activations: bool = False
    micro_batch: int = 8  # documents a forward pass: as many as fit the memory
    context: int = 128  # longer documents are cut
    width: int = 64
    layers: int = 3
    heads: int = 4
    lr: float = 5e-3
    warmup_steps: int = 10
    weight_decay: float = 0.1
    clip_norm: float = 1.0
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

# Bytes are tokens 0 to 255. The end of a document has a token of its own and padding another: with
# one for both, masking the padding would mask the end as well.
BEGIN, END, PAD, VOCABULARY = 256, 257, 258, 259
IGNORE = -100  # F.cross_entropy's own value for targets that do not count


def load_docstrings() -> tuple[list[bytes], list[bytes]]:
    """Paragraphs of the standard library's docstrings; whole source files are held out.

    Docstrings of one file resemble each other: a random split would leak.
    """
    train: list[bytes] = []
    val: list[bytes] = []
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        held_out = zlib.crc32(file.name.encode()) % 8 == 0
        for node in ast.walk(ast.parse(file.read_bytes())):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                text = " ".join(paragraph.split()).encode()
                if 32 <= len(text) <= 126:
                    (val if held_out else train).append(text)
    return train, val


def load_documents(settings: Settings) -> tuple[list[bytes], list[bytes]]:
    if not settings.data:
        return load_docstrings()
    train, val = (
        [json.loads(line)["text"].encode() for line in (Path(settings.data) / name).open()]
        for name in ("train.jsonl", "val.jsonl")
    )
    return train, val


def collate(documents: list[bytes], context: int) -> tuple[Tensor, Tensor]:
    """Inputs padded with PAD and the tokens that follow, padded with IGNORE."""
    sequences = [torch.tensor([BEGIN, *text, END][: context + 1]) for text in documents]
    return (
        pad_sequence([s[:-1] for s in sequences], batch_first=True, padding_value=PAD),
        pad_sequence([s[1:] for s in sequences], batch_first=True, padding_value=IGNORE),
    )


class ResumableSampler(Sampler[int]):
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


Batch = tuple[Tensor, Tensor]


def windows(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """Groups of `size` micro-batches; the last group of an epoch is whatever is left.

    Testing `(i + 1) % size == 0` in the loop instead drops the rest of each epoch, or worse, leaves
    its gradients lying around for the next one.
    """
    stream = iter(batches)
    while window := list(islice(stream, size)):
        yield window


# ---- model --------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width, bias=False),
            nn.GELU(),
            nn.Linear(4 * width, width, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(dim=0)  # (batch, heads, length, channels) each
        # Padding is on the right, where causal attention never looks: no further mask is needed.
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class GPT(nn.Module):
    """Small and plain: language/gpt.py shows the modern parts."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.checkpoint_activations = settings.checkpoint_activations
        self.embedding = nn.Embedding(VOCABULARY, settings.width)
        self.positions = nn.Embedding(settings.context, settings.width)
        self.blocks = nn.ModuleList(
            Block(settings.width, settings.heads) for _ in range(settings.layers)
        )
        self.norm = nn.RMSNorm(settings.width)
        self.head = nn.Linear(settings.width, VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=math.sqrt(2 / (5 * settings.width)))

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens) + self.positions(places)
        for block in self.blocks:
            if self.checkpoint_activations and self.training:
                # Keep the block's input only; compute the rest again in the backward pass, with the
                # same random numbers. Not the old reentrant kind: that one loses gradients when
                # its input needs none (a frozen embedding), without a word.
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits: Tensor = self.head(self.norm(x)).float()  # softmax in float32
        return logits


def build_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    # Decay only what multiplies: not norms, and not the rows of embeddings.
    named = list(model.named_parameters())
    tables = ("embedding.weight", "positions.weight")
    weights = [p for name, p in named if p.ndim >= 2 and name not in tables]
    others = [p for name, p in named if p.ndim < 2 or name in tables]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    betas, decay = (0.9, 0.95), settings.weight_decay  # GPT-3's (arXiv:2005.14165)
    if settings.optimizer == "8bit":
        try:
            bitsandbytes = importlib.import_module("bitsandbytes")
        except ImportError:
            raise SystemExit("--optimizer 8bit needs a package: pip install bitsandbytes") from None
        # Both moments in 8 bits, with a scale for each block of values: 2 bytes a parameter, not 8.
        optimizer: torch.optim.Optimizer = bitsandbytes.optim.AdamW8bit(
            groups, lr=settings.lr, betas=betas, weight_decay=decay
        )
        return optimizer
    if settings.optimizer == "adafactor":
        # No first moment, and of the second only its sums over rows and over columns: next to
        # nothing for a matrix (Shazeer and Stern 2018, arXiv:1804.04235).
        return torch.optim.Adafactor(groups, lr=settings.lr, weight_decay=decay)
    # Fused: one kernel updates all tensors, where the plain one needs several passes over them.
    fused = settings.optimizer == "fused"
    return torch.optim.AdamW(groups, lr=settings.lr, betas=betas, weight_decay=decay, fused=fused)


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[Any], device: torch.device) -> float:
    """Bits per token (a byte, or the end): totals divided once, padding left out."""
    model.eval()
    nats = torch.zeros((), dtype=torch.float64, device=device)
    count = torch.zeros((), dtype=torch.long, device=device)
    for tokens, targets in loader:
        tokens, targets = tokens.to(device), targets.to(device)
        logits = model(tokens)
        nats += F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum"
        )
        count += (targets != IGNORE).sum()
    return nats.item() / math.log(2) / count.item()


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="memory-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_documents, val_documents = load_documents(settings)
    sampler = ResumableSampler(train_documents, settings.seed)
    train_loader: DataLoader[Any] = DataLoader(
        train_documents,  # type: ignore[arg-type]
        batch_size=settings.micro_batch,
        sampler=sampler,
        collate_fn=lambda documents: collate(documents, settings.context),
        pin_memory=device.type == "cuda",  # makes the copy to the device asynchronous
        generator=torch.Generator(),  # its own: starting an epoch must not move the global stream
    )
    val_loader: DataLoader[Any] = DataLoader(
        val_documents,  # type: ignore[arg-type]
        batch_size=8 * settings.micro_batch,  # nothing is kept for a backward pass
        collate_fn=lambda documents: collate(documents, settings.context),
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    documents_per_step = settings.micro_batch * settings.accumulate
    steps_per_epoch = math.ceil(len(train_documents) / documents_per_step)
    total_steps = settings.steps or settings.epochs * steps_per_epoch

    # The model goes to its device first: the optimizer keeps references to the parameters. It stays
    # in float32 whatever the precision of the computation: a step is a thousandth of a weight, and
    # bfloat16's 8 bits would round it away.
    model = GPT(settings).to(device)
    optimizer = build_optimizer(model, settings)

    def lr_share(step: int) -> float:
        """Linear warm-up, then a cosine to a tenth."""
        if step < settings.warmup_steps:
            return (step + 1) / settings.warmup_steps
        progress = (step - settings.warmup_steps) / max(1, total_steps - settings.warmup_steps)
        return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * progress))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_share)
    amp_dtype = torch.float16 if settings.amp == "fp16" else torch.bfloat16
    # float16 ends at 6e-8, and many gradients are smaller: multiply the loss by a large number,
    # divide the gradients by it. bfloat16 reaches as far down as float32 and needs none of it; a
    # disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp == "fp16")

    step = 0
    skipped = 0  # steps that float16 overflowed in
    best_bits = math.inf
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]
        state = torch.load(newest, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        sampler.load_state_dict(state["sampler"])
        step = state["step"]
        skipped = state["skipped"]
        best_bits = state["best_bits"]
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "skipped": skipped,
            "best_bits": best_bits,
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
        for window in windows(train_loader, settings.accumulate):
            # Micro-batches hold different numbers of tokens, and the last window of an epoch fewer
            # micro-batches. Summed losses over the window's own count make every token weigh the
            # same, however it was cut; a mean of means would favour short documents.
            window_tokens = sum(int((targets != IGNORE).sum()) for _, targets in window)
            step_loss = torch.zeros((), device=device)
            optimizer.zero_grad(set_to_none=True)
            for tokens, targets in window:
                tokens = tokens.to(device, non_blocking=True)
                targets = targets.to(device, non_blocking=True)
                # Forward pass and loss only: the backward pass takes its types from them.
                with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp != "none"):
                    logits = model(tokens)
                    loss = F.cross_entropy(
                        logits.flatten(0, 1),
                        targets.flatten(),
                        ignore_index=IGNORE,
                        reduction="sum",
                    )
                    loss = loss / window_tokens
                scaler.scale(loss).backward()
                step_loss += loss.detach()
            # Once a window, and on true gradients: a bound on scaled ones would always bite.
            scaler.unscale_(optimizer)
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
            scale = scaler.get_scale()
            scaler.step(optimizer)  # leaves the step out if a gradient is not finite
            scaler.update()
            if scaler.get_scale() >= scale:
                scheduler.step()
            else:
                skipped += 1
            step += 1
            sampler.position += documents_per_step

            if step % settings.log_every == 0:  # reading numbers waits for the device
                numbers = {"train_loss": step_loss.item(), "grad_norm": grad_norm.item()}
                log(step, {**numbers, "scale": scaler.get_scale(), "skipped": skipped})
                print(
                    f"\rstep {step}/{total_steps} loss {step_loss.item():.4f}", end="", flush=True
                )
            # The last step is saved below, once evaluated: a run resumed here would skip that.
            if step % settings.checkpoint_every == 0 and step < total_steps:
                save_step(snapshot(), out, settings.keep)
            if step == total_steps:
                break
        else:  # the epoch ran to its end
            sampler.epoch += 1
            sampler.position = 0
        val_bits = evaluate(model, val_loader, device)
        log(step, {"val_bits": val_bits})
        if val_bits < best_bits:
            best_bits = val_bits
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_bits = evaluate(model, val_loader, device)
    memory = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    print(f"\nval_bits:         {val_bits:.4f}")
    print("target:           val_bits <= 3.9")
    print(f"skipped_steps:    {skipped}")
    print(f"peak_vram_mb:     {memory / 2**20:.1f}")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
