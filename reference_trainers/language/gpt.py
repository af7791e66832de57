"""Pretrain a GPT: a decoder-only language model on packed documents, scored in bits per byte.

When to use    To pretrain a causal language model, or as the base of any project that has one.
Source         GPT-3 (Brown et al. 2020, arXiv:2005.14165) for the optimiser and its settings;
               Llama (arXiv:2302.13971) for the shape: RMSNorm (arXiv:1910.07467), rotary positions
               (arXiv:2104.09864), SwiGLU (arXiv:2002.05202). Grouped-query attention
               (arXiv:2305.13245), squared ReLU (Primer, arXiv:2109.08668), normalised queries and
               keys (arXiv:2302.05442), capped logits (Gemma 2, arXiv:2408.00118), best-fit packing
               (arXiv:2404.10830), learned residual scales with a skip from the embedding
               (modded-nanogpt and nanochat).
Expected       The standard library's docstrings as documents, bytes as tokens, 1 core:
               val_bpb below 3.5 in under a minute (gzip -9 on each held-out docstring: 4.5).
Full scale     --data DIR --device cuda --amp --compile --layers 12 --width 768 --heads 12
               --kv-heads 4 --context 1024 --batch-size 480 --lr 6e-4 --warmup-steps 700
               --steps 20000: GPT-3 table 2.1's 124M model, half a million tokens a step.
               DIR holds train.bin and val.bin (uint16 token ids; each document begins with BOS)
               and token_bytes.npy (the bytes of text behind each token id, 0 for special tokens).
               More rows than the memory takes: accumulate, as memory/mixed_precision.py shows.
Resume         Checkpoints go to --out. Start the same command again with --resume: the run goes
               on where the newest checkpoint stands, and on a CPU its losses are the same to the
               last bit as if it had never been stopped.
"""

import argparse
import ast
import csv
import itertools
import math
import os
import random
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# ---- settings: each one is a flag of the same name ----------------------------------------------


@dataclass(frozen=True)
class Settings:
    data: str = ""  # folder with train.bin, val.bin, token_bytes.npy; empty: Python's docstrings
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    steps: int = 480
    seed: int = 0
    out: str = ""  # where checkpoints and logs go; empty: a new temporary folder
    resume: bool = False  # go on from the newest checkpoint in --out, if there is one
    log: Literal["none", "csv", "tensorboard"] = "none"
    log_every: int = 10
    amp: bool = False  # bfloat16 where the device has it, else float16 with loss scaling
    compile: bool = False  # torch.compile: minutes of waiting, then 1.5 to 2 times the speed
    context: int = 128  # tokens a row
    batch_size: int = 4  # rows a step
    layers: int = 3
    width: int = 64
    heads: int = 4
    kv_heads: int = 2  # heads that share a key and value head save memory when generating
    mlp: Literal["swiglu", "relu2"] = "swiglu"  # the same number of parameters
    zero_init: bool = True  # residual branches start silent
    logit_cap: float = 30.0  # Gemma 2's value; 0: none
    lr: float = 3e-3  # small models take more: GPT-3 has 6e-4 at 124M and 2e-4 at 6.7B parameters
    warmup_steps: int = 20
    final_lr: float = 0.1  # share of lr where the cosine ends (GPT-3, Chinchilla)
    weight_decay: float = 0.1
    clip_norm: float = 1.0
    eval_every: int = 200
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


# ---- data: documents, packing, the way to the device --------------------------------------------


class Documents(Protocol):
    """The token ids of each document, without BOS: a list, or a file read piece by piece."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Tensor: ...


@dataclass(frozen=True)
class Corpus:
    train: Documents
    val: Documents
    token_bytes: Tensor  # bytes of text behind each token id; 0 for BOS
    bos: int


def load_docstrings() -> Corpus:
    """The docstrings of the standard library: real English prose, at hand wherever Python is.

    Whole source files are held out, not single docstrings: docstrings of one file resemble each
    other, and a random split would leak.
    """
    train: list[Tensor] = []
    val: list[Tensor] = []
    seen: set[str] = set()
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        held_out = zlib.crc32(file.name.encode()) % 12 == 0
        for node in ast.walk(ast.parse(file.read_bytes())):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                continue
            text = ast.get_docstring(node)
            if text is None or len(text) < 64 or text in seen:
                continue
            seen.add(text)
            document = torch.tensor(list(text.encode()), dtype=torch.long)
            (val if held_out else train).append(document)
    token_bytes = torch.ones(257, dtype=torch.long)
    token_bytes[256] = 0
    return Corpus(train, val, token_bytes, bos=256)


class TokenFile:
    """Documents of a uint16 token file, read from disk only when asked for."""

    def __init__(self, file: Path, bos: int) -> None:
        self.tokens = np.memmap(file, dtype=np.uint16, mode="r")
        starts = np.flatnonzero(self.tokens == bos)
        self.spans = list(itertools.pairwise([*starts.tolist(), len(self.tokens)]))

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, index: int, /) -> Tensor:
        start, end = self.spans[index]
        return torch.from_numpy(self.tokens[start + 1 : end].astype(np.int64))


def load_corpus(data: str) -> Corpus:
    if not data:
        return load_docstrings()
    folder = Path(data)
    bos = int(np.memmap(folder / "train.bin", dtype=np.uint16, mode="r")[0])
    token_bytes = torch.from_numpy(np.load(folder / "token_bytes.npy").astype(np.int64))
    train = TokenFile(folder / "train.bin", bos)
    return Corpus(train, TokenFile(folder / "val.bin", bos), token_bytes, bos)


def pieces_of(document: Tensor, bos: int, longest: int) -> list[Tensor]:
    """BOS and the document; a document too long for a row becomes several such pieces."""
    start = torch.tensor([bos])
    return [torch.cat([start, piece]) for piece in document.split(longest - 1)]


class PackedRows:
    """Rows filled to the last token with whole documents, for ever (arXiv:2404.10830).

    Each row takes, again and again, the largest waiting piece that still fits; when none fits,
    the shortest is cut to fill the row, and what is left of it waits on as a piece of its own
    instead of being thrown away. Every row begins with BOS, no row has padding, and nothing is
    trained on twice in an epoch.

    The stream's position is three numbers and the waiting pieces, so a resumed run reads exactly
    the rows that the killed run would have read.
    """

    def __init__(self, documents: Documents, bos: int, settings: Settings) -> None:
        self.documents, self.bos, self.seed = documents, bos, settings.seed
        self.rows, self.row_length = settings.batch_size, settings.context + 1
        self.epoch, self.position = 1, 0
        self.waiting: list[Tensor] = []
        self.order = self.shuffled()

    def shuffled(self) -> list[int]:
        """A new order each epoch, a function of seed and epoch alone."""
        generator = torch.Generator().manual_seed(self.seed * 100_003 + self.epoch)
        return torch.randperm(len(self.documents), generator=generator).tolist()

    def refill(self) -> None:
        while len(self.waiting) < 256:  # more waiting pieces fit better, and cost memory
            if self.position == len(self.order):
                self.epoch, self.position = self.epoch + 1, 0
                self.order = self.shuffled()
            document = self.documents[self.order[self.position]]
            self.waiting += pieces_of(document, self.bos, self.row_length)
            self.position += 1

    def fill(self, row: Tensor) -> None:
        filled = 0
        while filled < len(row):
            self.refill()
            space = len(row) - filled
            fits = [i for i, piece in enumerate(self.waiting) if len(piece) <= space]
            if fits:
                piece = self.waiting.pop(max(fits, key=lambda i: len(self.waiting[i])))
            else:
                shortest = min(range(len(self.waiting)), key=lambda i: len(self.waiting[i]))
                whole = self.waiting.pop(shortest)
                piece, rest = whole[:space], whole[space:]
                self.waiting.append(torch.cat([torch.tensor([self.bos]), rest]))
            row[filled : filled + len(piece)] = piece
            filled += len(piece)

    def fill_batch(self, batch: Tensor) -> int:
        """Write the next rows into `batch` and return the epoch they come from."""
        for row in batch:
            self.fill(row)
        return self.epoch

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "position": self.position, "waiting": list(self.waiting)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.position = state["epoch"], state["position"]
        self.waiting = list(state["waiting"])
        self.order = self.shuffled()


def batches_on(device: torch.device, packed: PackedRows) -> Iterator[tuple[Tensor, int]]:
    """Yield (rows on the device, epoch) for ever; on CUDA the copy runs beside the computation.

    A copy from pinned memory returns before it is done. Two pinned buffers take turns, and each
    is refilled only after the event recorded behind its own copy: with one buffer and no event,
    the next rows would overwrite rows still on their way.
    """
    shape = (packed.rows, packed.row_length)
    if device.type != "cuda":
        while True:
            rows = torch.empty(shape, dtype=torch.long)
            epoch = packed.fill_batch(rows)
            yield rows, epoch
    buffers = [torch.empty(shape, dtype=torch.long, pin_memory=True) for _ in range(2)]
    copied = [torch.cuda.Event(), torch.cuda.Event()]
    for turn in itertools.cycle([0, 1]):
        copied[turn].synchronize()  # returns at once for an event that was never recorded
        epoch = packed.fill_batch(buffers[turn])
        rows = buffers[turn].to(device, non_blocking=True)
        copied[turn].record()
        yield rows, epoch


def pack_once(documents: Documents, bos: int, length: int) -> Tensor:
    """Every token of the held-out documents in exactly one row; gaps are filled with BOS.

    BOS stands for zero bytes of text, so gaps and document starts drop out of bits per byte.
    """
    pieces = [
        piece for i in range(len(documents)) for piece in pieces_of(documents[i], bos, length)
    ]
    rows: list[list[Tensor]] = []
    space: list[int] = []
    for piece in sorted(pieces, key=len, reverse=True):  # best-fit decreasing
        fits = [i for i, free in enumerate(space) if free >= len(piece)]
        if fits:
            best = min(fits, key=lambda i: space[i])
            rows[best].append(piece)
            space[best] -= len(piece)
        else:
            rows.append([piece])
            space.append(length - len(piece))
    packed = torch.full((len(rows), length), bos, dtype=torch.long)
    for row, members in zip(packed, rows, strict=True):
        tokens = torch.cat(members)
        row[: len(tokens)] = tokens
    return packed


# ---- model --------------------------------------------------------------------------------------


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary positions (arXiv:2104.09864): turn each pair of channels by position * frequency."""
    first, second = x.float().chunk(2, dim=-1)  # angles lose their meaning in half precision
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1).type_as(x)


class Attention(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.heads, self.kv_heads = settings.heads, settings.kv_heads
        self.head_dim = settings.width // settings.heads
        self.query = nn.Linear(settings.width, self.heads * self.head_dim, bias=False)
        self.key = nn.Linear(settings.width, self.kv_heads * self.head_dim, bias=False)
        self.value = nn.Linear(settings.width, self.kv_heads * self.head_dim, bias=False)
        self.out = nn.Linear(settings.width, settings.width, bias=False)
        # Normalised queries and keys keep attention logits bounded (arXiv:2302.05442).
        self.query_norm = nn.RMSNorm(self.head_dim)
        self.key_norm = nn.RMSNorm(self.head_dim)

    def forward(self, x: Tensor, angles: Tensor, allowed: Tensor) -> Tensor:
        batch, length, width = x.shape
        q = self.query(x).view(batch, length, self.heads, self.head_dim).transpose(1, 2)
        k = self.key(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        v = self.value(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)
        q = rotate(self.query_norm(q), angles)
        k = rotate(self.key_norm(k), angles)
        # SDPA picks the fastest kernel that takes a mask. At full scale, variable-length flash
        # attention (torch.nn.attention.varlen) or FlexAttention skip the masked blocks as well.
        # Normalised, a query and a key meet in at most head_dim, and the usual 1 / sqrt(head_dim)
        # would leave logits within +-4 here: too flat to single out one token. This bound is 15 for
        # heads of any size (modded-nanogpt: 0.12 for 128).
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=allowed, scale=15 / self.head_dim, enable_gqa=True
        )
        out: Tensor = self.out(y.transpose(1, 2).reshape(batch, length, width))
        return out


class SwiGLU(nn.Module):
    """Gated MLP (arXiv:2002.05202); 8/3 of the width gives three matrices the size of two."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = 8 * width // 3
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(F.silu(self.gate(x)) * self.up(x))
        return out


class SquaredReLU(nn.Module):
    """Two matrices with relu(x)^2 between (Primer, arXiv:2109.08668): sparse and cheap."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(F.relu(self.up(x)).square())
        return out


class Block(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(settings.width)
        self.attention = Attention(settings)
        self.mlp_norm = nn.RMSNorm(settings.width)
        self.mlp = (
            SwiGLU(settings.width) if settings.mlp == "swiglu" else SquaredReLU(settings.width)
        )
        # How much of the stream and of the first embedding enters this block: learned, beginning
        # at the plain residual network (modded-nanogpt's x0 skip).
        self.stream_scale = nn.Parameter(torch.ones(1))
        self.input_scale = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, x0: Tensor, angles: Tensor, allowed: Tensor) -> Tensor:
        x = self.stream_scale * x + self.input_scale * x0
        x = x + self.attention(self.attention_norm(x), angles, allowed)
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class GPT(nn.Module):
    frequencies: Tensor
    causal: Tensor

    def __init__(self, settings: Settings, vocabulary: int, bos: int) -> None:
        super().__init__()
        self.bos, self.logit_cap = bos, settings.logit_cap
        self.embedding = nn.Embedding(vocabulary, settings.width)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.layers))
        self.norm = nn.RMSNorm(settings.width)
        self.head = nn.Linear(settings.width, vocabulary, bias=False)
        # Constants are buffers, so that they move with the model; nothing to save in them.
        head_dim = settings.width // settings.heads
        frequencies = 10_000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
        self.register_buffer("frequencies", frequencies, persistent=False)
        causal = torch.ones(settings.context, settings.context, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)
        # "Small init" sqrt(2 / 5d) (Nguyen and Salazar, arXiv:1910.05895; GPT-NeoX).
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=math.sqrt(2 / (5 * settings.width)))
        if settings.zero_init:
            # Every branch starts silent and the network as the identity, whatever its depth
            # (Fixup, ReZero). Only the last matrix of a branch: with two zeros in a row neither
            # would ever get a gradient.
            for block in self.blocks:
                assert isinstance(block, Block)
                nn.init.zeros_(block.attention.out.weight)
                nn.init.zeros_(block.mlp.out.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (batch, length, vocabulary) in float32 for rows of packed documents."""
        length = tokens.shape[1]
        starts = tokens == self.bos
        document = starts.cumsum(dim=1)
        # A token sees its own document's past and nothing of its neighbours in the row.
        allowed = (document[:, :, None] == document[:, None, :]) & self.causal[:length, :length]
        # Positions count from the document's BOS. Rotary attention only sees differences, so
        # within a document this changes nothing; with any other position code it is needed.
        index = torch.arange(length, device=tokens.device)
        position = index - torch.where(starts, index, 0).cummax(dim=1).values
        angles = position[:, None, :, None] * self.frequencies

        x = x0 = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, x0, angles, allowed[:, None])
        logits: Tensor = self.head(self.norm(x)).float()  # softmax over a vocabulary: float32
        if self.logit_cap > 0:
            logits = self.logit_cap * torch.tanh(logits / self.logit_cap)
        return logits


# ---- evaluation and accounting ------------------------------------------------------------------


@torch.no_grad()
def evaluate_bpb(model: GPT, rows: Tensor, token_bytes: Tensor, settings: Settings) -> float:
    """Bits per byte: comparable across tokenizers, unlike a loss per token.

    Totals are divided once, at the end: a mean of batch means would weigh tokens unequally, and
    a token's nats count only when it stands for text.
    """
    model.eval()
    device = model.head.weight.device
    bytes_of = token_bytes.to(device)
    nats = torch.zeros((), dtype=torch.float64, device=device)
    n_bytes = torch.zeros((), dtype=torch.long, device=device)
    for batch in rows.split(settings.batch_size):
        batch = batch.to(device)
        targets = batch[:, 1:].flatten()
        logits = model(batch[:, :-1])
        losses = F.cross_entropy(logits.flatten(0, 1), targets, reduction="none")
        lengths = bytes_of[targets]
        nats += losses[lengths > 0].double().sum()
        n_bytes += lengths.sum()
    model.train()
    return nats.item() / (math.log(2) * n_bytes.item())


def flops_per_token(model: GPT, settings: Settings) -> float:
    """Forward and backward, as in PaLM's appendix B (arXiv:2204.02311).

    6 for each matrix weight (the embedding is a look-up and costs none), and attention's
    12 * layers * width * context. Masked-out attention is counted, as is the custom.
    """
    matrices = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    matrices -= model.embedding.weight.numel()
    return 6 * matrices + 12 * settings.layers * settings.width * settings.context


def peak_flops(device: torch.device, amp: bool) -> float:
    """The data sheet's dense bfloat16 peak, or a timed matrix product where none is known."""
    peaks = {"A100": 312e12, "H100": 989e12, "H200": 989e12, "B200": 2250e12}
    if device.type == "cuda" and amp:
        name = torch.cuda.get_device_name(device)
        for chip, peak in peaks.items():
            if chip in name:
                return peak
    square = torch.randn(1024, 1024, device=device)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        (square @ square).sum().item()  # .item() waits for the device
        best = min(best, time.perf_counter() - start)
    return 2 * 1024**3 / best


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
    device = torch.device(settings.device)
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    torch.manual_seed(settings.seed)  # CUDA's streams too

    out = Path(settings.out or tempfile.mkdtemp(prefix="gpt-"))
    out.mkdir(parents=True, exist_ok=True)
    if find_checkpoints(out) and not settings.resume:
        raise SystemExit(
            f"{out} holds the checkpoints of another run: --resume it, or change --out"
        )
    log = open_log(settings, out)

    corpus = load_corpus(settings.data)
    packed = PackedRows(corpus.train, corpus.bos, settings)
    batches = batches_on(device, packed)
    val_rows = pack_once(corpus.val, corpus.bos, settings.context + 1)

    model = GPT(settings, len(corpus.token_bytes), corpus.bos).to(device)
    forward = torch.compile(model) if settings.compile else model  # same parameters, fused kernels
    # Decay what multiplies. The scales of the norms and of the residual stream have a meaning of
    # their own at 1, and an embedding row should not fade because its token is rare.
    named = list(model.named_parameters())
    decayed = [p for name, p in named if p.ndim >= 2 and name != "embedding.weight"]
    kept = [p for name, p in named if p.ndim < 2 or name == "embedding.weight"]
    groups: list[dict[str, Any]] = [
        {"params": decayed},
        {"params": kept, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        groups,
        lr=settings.lr,
        # GPT-3: a shorter memory for squared gradients (0.95, not 0.999) follows the sudden
        # changes of large-batch language modelling and avoids loss spikes.
        betas=(0.9, 0.95),
        weight_decay=settings.weight_decay,
        fused=device.type == "cuda",  # one kernel for all parameters
    )

    def lr_share(step: int) -> float:
        """Linear warm-up, then a cosine that ends where the run ends."""
        if step < settings.warmup_steps:
            return (step + 1) / settings.warmup_steps
        progress = (step - settings.warmup_steps) / max(1, settings.steps - settings.warmup_steps)
        cosine = 0.5 * (1 + math.cos(math.pi * progress))
        return settings.final_lr + (1 - settings.final_lr) * cosine

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_share)
    use_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    amp_dtype = torch.bfloat16 if use_bf16 else torch.float16
    # bfloat16 has the range of float32 and needs no scaling; a disabled scaler passes all through.
    scaler = torch.amp.GradScaler(device.type, enabled=settings.amp and not use_bf16)

    step = 0
    epoch = 1
    best_bpb = math.inf
    training_seconds = 0.0
    # A running average of the loss. It starts at zero, so its first values are far too small;
    # dividing by the weight collected so far takes that out, as Adam does with its moments.
    loss_average = torch.zeros((), device=device)
    memory_of_loss = 0.9
    if settings.resume and find_checkpoints(out):
        newest = find_checkpoints(out)[-1]
        state = torch.load(newest, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        packed.load_state_dict(state["sampler"])
        step = state["step"]
        epoch = state["epoch"]
        best_bpb = state["best_bpb"]
        training_seconds = state["training_seconds"]
        loss_average.copy_(state["loss_average"])
        set_random_state(state["random"])  # last: building all of the above drew numbers too
        print(f"resumed from {newest}")

    def snapshot() -> dict[str, Any]:
        return {
            "step": step,
            "epoch": epoch,
            "best_bpb": best_bpb,
            "training_seconds": training_seconds,
            "loss_average": loss_average,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "sampler": packed.state_dict(),
            "random": get_random_state(),
            "settings": asdict(settings),
        }

    model.train()
    clock = time.perf_counter()
    while step < settings.steps:
        rows, epoch = next(batches)
        with torch.autocast(device.type, dtype=amp_dtype, enabled=settings.amp):
            logits = forward(rows[:, :-1])
            # Every token predicts the next one. The target after a document's last token is the
            # next BOS: that is how the model learns where documents end.
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # clip real gradients, not scaled ones
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:  # else the gradients overflowed: no step was taken
            scheduler.step()
        step += 1
        loss_average.lerp_(loss.detach(), 1 - memory_of_loss)  # stays on the device: no waiting

        if step % settings.log_every == 0:  # reading numbers waits for the device
            smooth_loss = loss_average.item() / (1 - memory_of_loss**step)
            log(step, {"train_loss": loss.item(), "smooth_loss": smooth_loss})
            log(step, {"lr": optimizer.param_groups[0]["lr"], "grad_norm": grad_norm.item()})
            print(
                f"\rstep {step}/{settings.steps} epoch {epoch} loss {smooth_loss:.4f}",
                end="",
                flush=True,
            )
        if step % settings.eval_every == 0 and step < settings.steps:
            training_seconds += time.perf_counter() - clock
            val_bpb = evaluate_bpb(model, val_rows, corpus.token_bytes, settings)
            log(step, {"val_bpb": val_bpb})
            if val_bpb < best_bpb:
                best_bpb = val_bpb
                save_atomically(snapshot(), out / "best.pt")
            clock = time.perf_counter()
        if step % settings.checkpoint_every == 0:
            training_seconds += time.perf_counter() - clock
            save_step(snapshot(), out, settings.keep)
            clock = time.perf_counter()

    if device.type == "cuda":
        torch.cuda.synchronize()  # the last steps may still be running
    training_seconds += time.perf_counter() - clock
    save_step(snapshot(), out, settings.keep)
    val_bpb = evaluate_bpb(model, val_rows, corpus.token_bytes, settings)
    log(step, {"val_bpb": val_bpb})
    tokens = step * settings.batch_size * settings.context
    achieved = tokens * flops_per_token(model, settings) / training_seconds
    memory = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    print("\n---")  # one fact a line, for scripts to read
    print(f"val_bpb:          {val_bpb:.6f}")
    print(f"training_seconds: {training_seconds:.1f}")
    print(f"peak_vram_mb:     {memory / 2**20:.1f}")
    print(f"mfu_percent:      {100 * achieved / peak_flops(device, settings.amp):.2f}")
    print(f"total_tokens_M:   {tokens / 1e6:.1f}")
    print("target:           val_bpb <= 3.5")
    print(f"checkpoints:      {out}")


if __name__ == "__main__":
    main()
