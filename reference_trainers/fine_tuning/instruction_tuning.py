"""Instruction tuning: teach a small language model to answer, not to continue.

When to use    A pretrained causal language model shall follow requests: the first of the three
               steps of InstructGPT, and often the only one needed.
Source         InstructGPT (Ouyang et al. 2022, arXiv:2203.02155), FLAN (arXiv:2109.01652),
               OPT-IML (arXiv:2212.12017). Loss on the answer alone, every token of equal weight.
Expected       A small byte-level GPT learns the standard library's docstrings; then pairs of a
               request (a function's signature) and its answer (the docstring's first line), 1 core:
               below 3.7 bits a token of a held-out answer (4.3 before), in a minute.
Full scale     --data pairs.jsonl --device cuda --amp --width 768 --layers 12 --heads 12
               --context 1024 --batch-size 128 --lr 2e-5 --epochs 3 and a real base: fill `model`
               from its checkpoint instead of calling `pretrain`. Rates 10 to 100 times below those
               of pretraining, one to three passes. pairs.jsonl has a line {"request": "...",
               "answer": "..."} for each pair.
Resume         Checkpoints go to --out. Start the same command again with --resume: the run goes
               on where the newest checkpoint stands, and on a CPU its losses are the same to the
               last bit as if it had never been stopped.
"""

import argparse
import ast
import csv
import json
import math
import os
import random
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sized
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Sampler

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # file of JSON lines with "request" and "answer"; empty: Python's own functions
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    epochs: int = 1
    steps: int = 0  # above 0: stop after so many steps; the schedule shrinks with it
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    pretrain_steps: int = 150  # of the stand-in for a downloaded base model
    context: int = 128  # tokens of request and answer together; longer pairs are left out
    width: int = 64
    layers: int = 3
    heads: int = 4
    batch_size: int = 16
    lr: float = 3e-3  # the base here was hardly trained; 1e-5 to 5e-5 for a real one
    weight_decay: float = 0.0  # few steps from good weights: nothing to shrink
    warmup_share: float = 0.05  # of the run
    clip_norm: float = 1.0
    ema_decay: float = 0.98  # averages over about 1 / (1 - decay) steps: a small part of the run
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

# Bytes are tokens 0 to 255; then four special ones. The end of an answer has a token of its own and
# padding another. With one token for both, masking the padding would mask the end as well, and the
# model would never learn to stop.
BEGIN, ANSWER, END, PAD, VOCABULARY = 256, 257, 258, 259, 260
IGNORE = -100  # F.cross_entropy's own value for targets that do not count


@dataclass(frozen=True)
class Pair:
    request: bytes
    answer: bytes


def load_functions() -> tuple[list[Pair], list[Pair], bytes]:
    """Signatures and first docstring lines to train on and held out; prose to pretrain on.

    Whole source files are held out: functions of one file resemble each other.
    """
    train: list[Pair] = []
    val: list[Pair] = []
    prose: list[str] = []
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        held_out = zlib.crc32(file.name.encode()) % 8 == 0
        for node in ast.walk(ast.parse(file.read_bytes())):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                continue
            text = ast.get_docstring(node)
            if text is None:
                continue
            if not held_out:
                prose.append(text)
            if isinstance(node, ast.FunctionDef):
                request = f"{file.stem}.{node.name}({ast.unparse(node.args)})"
                pair = Pair(request.encode(), text.splitlines()[0].encode())
                (val if held_out else train).append(pair)
    return train, val, "\n\n".join(prose).encode()


def load_pairs(settings: Settings) -> tuple[list[Pair], list[Pair], bytes]:
    if not settings.data:
        return load_functions()
    pairs = []
    for line in Path(settings.data).read_text().splitlines():
        pair = json.loads(line)
        pairs.append(Pair(pair["request"].encode(), pair["answer"].encode()))
    # Held out by the request's text, not by position: a repeated request stays on one side.
    val = [pair for pair in pairs if zlib.crc32(pair.request) % 20 == 0]
    train = [pair for pair in pairs if zlib.crc32(pair.request) % 20 != 0]
    return train, val, b"\n\n".join(pair.request + b"\n" + pair.answer for pair in train)


def tokens_and_targets(pair: Pair) -> tuple[Tensor, Tensor]:
    """BEGIN request ANSWER answer END; the request's own tokens are no targets.

    The model is asked for the answer and for where it ends. Targets are shifted here, once: the
    target at each place is the token after it.
    """
    request = [BEGIN, *pair.request, ANSWER]
    answer = [*pair.answer, END]
    tokens = torch.tensor(request + answer)
    targets = torch.tensor([IGNORE] * (len(request) - 1) + answer)
    return tokens[:-1], targets


def collate(pairs: list[Pair]) -> tuple[Tensor, Tensor]:
    """Pad a batch to its longest pair: inputs with PAD, targets with IGNORE."""
    tokens, targets = zip(*(tokens_and_targets(pair) for pair in pairs), strict=True)
    return (
        pad_sequence(list(tokens), batch_first=True, padding_value=PAD),
        pad_sequence(list(targets), batch_first=True, padding_value=IGNORE),
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
        self.embedding = nn.Embedding(VOCABULARY, settings.width)
        self.positions = nn.Embedding(settings.context, settings.width)
        self.blocks = nn.Sequential(
            *(Block(settings.width, settings.heads) for _ in range(settings.layers))
        )
        self.norm = nn.RMSNorm(settings.width)
        self.head = nn.Linear(settings.width, VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=math.sqrt(2 / (5 * settings.width)))

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens) + self.positions(places)
        logits: Tensor = self.head(self.norm(self.blocks(x))).float()
        return logits


def pretrain(model: GPT, prose: bytes, settings: Settings, device: torch.device) -> None:
    """Stand-in for a downloaded base: next-byte prediction on windows of plain text."""
    text = torch.tensor(list(prose))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    model.train()
    for _ in range(settings.pretrain_steps):
        starts = torch.randint(0, len(text) - settings.context, (8,))
        windows = torch.stack([text[start : start + settings.context] for start in starts.tolist()])
        windows = windows.to(device)
        logits = model(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimizer.step()


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]], device: torch.device
) -> float:
    """Bits per token of the answers alone (a byte, or the end): totals divided once."""
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


@torch.no_grad()
def answer(model: nn.Module, request: bytes, settings: Settings, device: torch.device) -> str:
    """The likeliest answer, token by token, up to END. (Real use keeps keys and values.)"""
    model.eval()
    tokens = [BEGIN, *request, ANSWER]
    start = len(tokens)
    while len(tokens) < settings.context:
        logits = model(torch.tensor([tokens], device=device))
        token = int(logits[0, -1].argmax())
        if token == END:
            break
        tokens.append(token)
    return bytes(token for token in tokens[start:] if token < 256).decode(errors="replace")


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

    out = Path(settings.out or tempfile.mkdtemp(prefix="instruction-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    train_pairs, val_pairs, prose = load_pairs(settings)
    # A pair cut short would teach answers without an end, or requests without an answer.
    longest = settings.context - 2
    train_pairs = [p for p in train_pairs if len(p.request) + len(p.answer) <= longest]
    val_pairs = [p for p in val_pairs if len(p.request) + len(p.answer) <= longest]
    sampler = ResumableSampler(train_pairs, settings.seed)
    train_loader: DataLoader[Any] = DataLoader(
        train_pairs,  # type: ignore[arg-type]
        batch_size=settings.batch_size,
        sampler=sampler,
        collate_fn=collate,
        drop_last=True,  # steps of equal weight
        pin_memory=device.type == "cuda",  # makes the copy to the device asynchronous
        generator=torch.Generator(),  # its own: starting an epoch must not move the global stream
    )
    val_loader: DataLoader[Any] = DataLoader(
        val_pairs,  # type: ignore[arg-type]
        batch_size=4 * settings.batch_size,
        collate_fn=collate,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),
    )
    total_steps = settings.steps or settings.epochs * (len(train_pairs) // settings.batch_size)

    # The model goes to its device first: the optimizer keeps references to the parameters.
    model = GPT(settings).to(device)
    restoring = settings.resume and bool(find_checkpoints(out))
    bits_before = math.nan
    if not restoring:
        pretrain(model, prose, settings, device)
        bits_before = evaluate(model, val_loader, device)
    # Decay, if any, only what multiplies: not norms, and not the rows of embeddings.
    named = list(model.named_parameters())
    tables = ("embedding.weight", "positions.weight")
    weights = [p for name, p in named if p.ndim >= 2 and name not in tables]
    others = [p for name, p in named if p.ndim < 2 or name in tables]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        groups, lr=settings.lr, betas=(0.9, 0.95), weight_decay=settings.weight_decay
    )
    warmup_steps = max(1, round(settings.warmup_share * total_steps))

    def lr_share(step: int) -> float:
        """Linear warm-up, then linear decay to zero."""
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
    best_bits = math.inf
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
        best_bits = state["best_bits"]
        bits_before = state["bits_before"]
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "best_bits": best_bits,
            "bits_before": bits_before,
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
        for tokens, targets in train_loader:
            tokens = tokens.to(device, non_blocking=True)
            targets = targets.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
                # The mean over all answer tokens of the batch: neither requests nor padding count,
                # and a long answer weighs as much as its tokens.
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
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
        val_bits = evaluate(ema, val_loader, device)
        log(step, {"val_bits": val_bits})
        if val_bits < best_bits:
            best_bits = val_bits
            save_atomically(snapshot(), out / "best.pt")

    save_step(snapshot(), out, settings.keep)
    # The last weights, not those of the luckiest epoch: choosing on the validation set flatters.
    val_bits = evaluate(ema, val_loader, device)
    print(f"\nanswer_bits:      {val_bits:.4f}")
    print(f"before:           {bits_before:.4f}")
    print(f"without_ema:      {evaluate(model, val_loader, device):.4f}")
    print("target:           answer_bits <= 3.7")
    print(f"training_seconds: {time.perf_counter() - started:.1f}")
    print(f"checkpoints:      {out}")
    for pair in val_pairs[:3]:
        print(f"  {pair.request.decode()}\n    -> {answer(ema, pair.request, settings, device)}")


if __name__ == "__main__":
    main()
