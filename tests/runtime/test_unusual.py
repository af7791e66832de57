"""Programs that do things their own way: none may be broken by the probe or called faulty."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import LOOP, probe_json, write

pytestmark = pytest.mark.slow
FAST = ("--no-fixed-batch", "--steps", "4")

LBFGS = """
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
def closure():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss
for _ in range(20): optimizer.step(closure)
"""

CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU())
        self.head = nn.Linear(8, 3)
    def forward(self, x):
        return self.head(checkpoint(self.body, x, use_reentrant=False))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20): step()
"""

OWN_OPTIMIZER = """
class Own(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
optimizer = Own(model.parameters(), lr=0.1)
for _ in range(20): step()
"""

SKIPPED = """
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
for i in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

BY_HAND = """
del optimizer
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
"""


SCRIPTED = """
model = torch.jit.script(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20): step()
"""

COMPILED = """
model = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20): step()
"""

GAN = """
critic = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
critics = torch.optim.Adam(critic.parameters(), lr=1e-3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
judge = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
for _ in range(20):
    real, made = torch.randn(16, 3) + 2, model(torch.randn(16, 4))
    critics.zero_grad()
    (judge(critic(real), ones) + judge(critic(made.detach()), zeros)).backward()
    critics.step()
    optimizer.zero_grad()
    judge(critic(made), ones).backward()
    optimizer.step()
"""

ACTOR_CRITIC = """
value = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
values = torch.optim.Adam(value.parameters(), lr=1e-3)
for _ in range(20):
    states, rewards = torch.randn(16, 4), torch.randn(16)
    chosen = torch.distributions.Categorical(logits=model(states))
    action = chosen.sample()
    expected = value(states).squeeze(1)
    optimizer.zero_grad()
    (-chosen.log_prob(action) * (rewards - expected).detach()).mean().backward()
    optimizer.step()
    values.zero_grad()
    nn.functional.mse_loss(expected, rewards).backward()
    values.step()
"""

WORKERS = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, num_workers=2,
                    persistent_workers=True)
if __name__ == "__main__":
    for epoch in range(9):
        for a, b in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
"""

GET_BATCH = """
data = torch.randint(0, 9, (500,))
table, head = nn.Embedding(9, 16), nn.Linear(16, 9)
model = nn.Sequential(table, head)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
def get_batch():
    i = torch.randint(0, 480, (8,))
    return torch.stack([data[k:k + 12] for k in i]), torch.stack([data[k + 1:k + 13] for k in i])
for _ in range(40):
    a, b = get_batch()
    loss = nn.functional.cross_entropy(model(a).flatten(0, 1), b.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
"""

ACCUMULATED = """
for i in range(60):
    loss = nn.functional.cross_entropy(model(x), y) / 3
    loss.backward()
    if i % 3 == 2:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
"""

OWN_FUNCTION = """
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()
    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0].abs() <= 1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 32), nn.Linear(32, 3)
    def forward(self, x):
        return self.last(Sign.apply(self.first(x)))
model, x = Net().double(), x.double()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for _ in range(40): step()
"""

SPARSE = """
table, head = nn.Embedding(50, 8, sparse=True), nn.Linear(8, 50)
optimizers = [torch.optim.SparseAdam(table.parameters()), torch.optim.Adam(head.parameters())]
for _ in range(40):
    words = torch.randint(0, 50, (16,))
    for one in optimizers: one.zero_grad()
    nn.functional.cross_entropy(head(table(words)), (words * 7 + 3) % 50).backward()
    for one in optimizers: one.step()
"""

PER_SAMPLE = """
from torch.func import functional_call, grad, vmap
def loss_of(params, a, b):
    return nn.functional.cross_entropy(functional_call(model, params, (a[None],)), b[None])
each = vmap(grad(loss_of), in_dims=(None, 0, 0))
for _ in range(40):
    found = each({n: p.detach() for n, p in model.named_parameters()}, x, y)
    for name, param in model.named_parameters():
        param.grad = found[name].mean(0)
    optimizer.step()
"""

GRADIENT_PENALTY = """
critic = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
critics = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(20):
    for _ in range(3):
        real, made = torch.randn(16, 3) + 2, model(torch.randn(16, 4)).detach()
        between = torch.lerp(real, made, torch.rand(16, 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = 10 * (slope.norm(dim=1) - 1).square().mean()
        critics.zero_grad()
        (critic(made).mean() - critic(real).mean() + penalty).backward()
        critics.step()
    optimizer.zero_grad()
    (-critic(model(torch.randn(16, 4)))).mean().backward()
    optimizer.step()
"""

ASYNCHRONOUS = """
import asyncio
async def batches():
    for _ in range(90):
        await asyncio.sleep(0)
        yield x + 0.1 * torch.randn_like(x), y
async def train():
    async for a, b in batches():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
asyncio.run(train())
"""

NESTED = """
table, inner, head = nn.Embedding(100, 16), nn.Linear(16, 16), nn.Linear(16, 5)
optimizer = torch.optim.Adam([*table.parameters(), *inner.parameters(), *head.parameters()], 3e-3)
for _ in range(40):
    texts = [torch.randint(0, 100, (int(n),)) for n in torch.randint(3, 12, (8,))]
    packed = torch.nested.nested_tensor(texts, layout=torch.jagged)
    read = torch.stack([t[0] for t in inner(table(packed)).relu().unbind()])
    optimizer.zero_grad()
    labels = torch.tensor([int(t[0]) % 5 for t in texts])
    nn.functional.cross_entropy(head(read), labels).backward()
    optimizer.step()
"""

LAZY = """
from torch.nn.utils import parametrizations
model = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(),
                      parametrizations.weight_norm(nn.Linear(8, 8)), nn.LazyLinear(3))
with torch.no_grad():
    model(x)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(40): step()
"""

AVERAGED = """
from torch.optim.swa_utils import AveragedModel
ema_model, target_net = AveragedModel(model), torch.nn.Linear(4, 3)
for _ in range(20):
    step()
    ema_model.update_parameters(model)
    for m in (model, target_net, ema_model):
        m.eval()
        with torch.no_grad(): m(x)
    model.train()
"""

ENSEMBLE = """
from torch.func import functional_call, stack_module_state, vmap
state = stack_module_state([nn.Linear(4, 3) for _ in range(3)])[0]
bare = nn.Linear(4, 3, device="meta")
each = vmap(lambda params, x: functional_call(bare, params, (x,)), (0, None))
optimizer = torch.optim.Adam(state.values(), 1e-2)
for _ in range(40):
    optimizer.zero_grad()
    each(state, x).sub(nn.functional.one_hot(y)).square().mean().backward()
    optimizer.step()
"""

DETECTION = """
from torch.utils.data import DataLoader
rows = torch.randn(80, 4)
data = [(r.expand(4 + i % 3, 4), {"boxes": r, "labels": torch.ones(1)}) for i, r in enumerate(rows)]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)
    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self
    def forward(self, images, targets):
        boxes = self.head(self.norm(torch.stack([self.body(i).mean(0) for i in images])))
        return {"boxes": nn.functional.l1_loss(boxes, torch.stack([t["boxes"] for t in targets]))}
model = Net().train()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(9):
    for images, targets in DataLoader(data, 4, shuffle=True, collate_fn=lambda b: tuple(zip(*b))):
        optimizer.zero_grad()
        sum(model(images, targets).values()).backward()
        optimizer.step()
"""

UNUSUAL = {
    "lbfgs": LBFGS,
    "activation-checkpointing": CHECKPOINTED,
    "own-optimizer": OWN_OPTIMIZER,
    "scaler-skips": SKIPPED,
    "by-hand": BY_HAND,
    "scripted": SCRIPTED,
    "compiled": COMPILED,
    "gan": GAN,
    "actor-critic": ACTOR_CRITIC,
    "workers": WORKERS,
    "get-batch": GET_BATCH,
    "accumulated": ACCUMULATED,
    "own-function": OWN_FUNCTION,
    "sparse": SPARSE,
    "per-sample-gradients": PER_SAMPLE,
    "gradient-penalty": GRADIENT_PENALTY,
    "asynchronous": ASYNCHRONOUS,
    "nested": NESTED,
    "lazy": LAZY,
    "averaged": AVERAGED,
    "ensemble": ENSEMBLE,
    "detection": DETECTION,
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_but_right_programs_are_left_alone(name: str, tmp_path: Path) -> None:
    code, report = probe_json(tmp_path, "--steps", "4", str(write(tmp_path, LOOP + UNUSUAL[name])))
    found = {f["rule"] for f in report["findings"] if f["level"] != "note"}
    # So large a scale really overflows at most steps.
    assert found == ({"scaler-skips-steps"} if name == "scaler-skips" else set())
    assert (code, report["instrument_errors"]) == (0, [])
    assert any("torch.compile" in note for note in report["notes"]) == (name == "compiled")


def test_compiled_steps_are_kept_when_asked(tmp_path: Path) -> None:
    text = LOOP + COMPILED.replace("compile(model)", "compile(model, backend='aot_eager')")
    args = (*FAST, "--keep-compile", str(write(tmp_path, text)))
    code, report = probe_json(tmp_path, *args)
    assert (code, report["instrument_errors"]) == (0, [])
    assert report["phases"]["observe"]["steps"] >= 4


def test_a_batch_without_a_loader_is_held_too(tmp_path: Path) -> None:
    _, report = probe_json(tmp_path, str(write(tmp_path, LOOP + GET_BATCH)))
    losses = report["phases"]["fixed"]["losses"]
    assert losses[-1] < 0.8 * losses[0]
    assert losses == sorted(losses, reverse=True)
