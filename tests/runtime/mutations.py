# ruff: noqa: E501
"""Faults put into the clean base programs: what is replaced, and which rule must name it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Mutation:
    """One fault: ``old`` becomes ``new`` in a base program; any of ``rules`` names it rightly."""

    name: str
    base: str
    old: str
    new: str
    rules: tuple[str, ...]
    fixed: bool = False

    @property
    def ranks(self) -> int:
        """How many processes the program needs."""
        return 2 if self.base == "ddp" else 1

    def source(self) -> str:
        """The faulty program."""
        text = (PROGRAMS / f"{self.base}.py").read_text()
        if self.old not in text:
            raise ValueError(f"{self.name}: {self.base}.py does not contain {self.old!r}")
        return text.replace(self.old, self.new)


def _m(name: str, base: str, old: str, new: str, *rules: str, fixed: bool = False) -> Mutation:
    return Mutation(name, base, old, new, rules, fixed)


ZERO = "        optimizer.zero_grad()\n"
STEP = "        optimizer.step()\n"
BACK = "        loss.backward()\n"

CLIP_DDP = "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"

MUTATIONS = [
    # gradients cleared at the wrong time, or never
    _m("mlp-no-zero-grad", "mlp", ZERO, "", "zero-grad-missing"),
    _m("cnn-no-zero-grad", "cnn", ZERO, "", "zero-grad-missing"),
    _m("vae-no-zero-grad", "vae", ZERO, "", "zero-grad-missing"),
    _m("vit-no-zero-grad", "vit", "        optimizer.zero_grad(set_to_none=True)\n", "", "zero-grad-missing"),
    _m("gpt-no-zero-grad", "gpt", "    optimizer.zero_grad(set_to_none=True)\n", "", "zero-grad-missing"),
    _m("lstm-no-zero-grad", "lstm", ZERO, "", "zero-grad-missing"),
    _m("diffusion-no-zero-grad", "diffusion", ZERO, "", "zero-grad-missing"),
    _m("dcgan-no-zero-grad-d", "dcgan", "        discriminator.zero_grad()\n", "", "zero-grad-missing"),
    _m("regression-zero-grad-uncalled", "regression", "            optimizer.zero_grad()\n", "            optimizer.zero_grad\n", "zero-grad-missing"),
    _m("resnet-zero-grad-between", "resnet", "            optimizer.step()\n            optimizer.zero_grad()\n", "            optimizer.zero_grad()\n            optimizer.step()\n", "zero-grad-between"),
    _m("mlp-zero-grad-between", "mlp", BACK, BACK + ZERO, "zero-grad-between"),
    _m("cnn-zero-grad-between", "cnn", BACK, BACK + ZERO, "zero-grad-between"),
    _m("resnet-zero-grad-each-micro-batch", "resnet", "        loss = criterion(model(x), y) / accumulate\n", "        optimizer.zero_grad()\n        loss = criterion(model(x), y) / accumulate\n", "zero-grad-breaks-accumulation"),
    _m("gpt-zero-grad-each-micro-batch", "gpt", "        logits, loss = model(x, y)\n", "        optimizer.zero_grad()\n        logits, loss = model(x, y)\n", "zero-grad-breaks-accumulation"),
    # wiring
    _m("mlp-head-not-in-optimizer", "mlp", "AdamW(model.parameters()", "AdamW([*model.first.parameters(), *model.second.parameters()]", "params-not-in-optimizer"),
    _m("cnn-replaced-head", "cnn", "scheduler =", "model.head = nn.Linear(512, 10)\nscheduler =", "params-not-in-optimizer"),
    _m("vit-forgotten-group", "vit", '{"params": rest, "weight_decay": 0.0}', "", "params-not-in-optimizer"),
    _m("resnet-optimizer-of-copy", "resnet", "SGD(model.parameters()", "SGD(copy.deepcopy(model).parameters()", "optimizer-wrong-params"),
    _m("dcgan-swapped-optimizer", "dcgan", "Adam(discriminator.parameters()", "Adam(generator.parameters()", "params-not-in-optimizer", "duplicate-params"),
    _m("mlp-optimizer-over-frozen", "mlp", "AdamW(model.parameters()", "AdamW(model.head.requires_grad_(False).parameters()", "optimizer-wrong-params"),
    _m("mlp-duplicate", "mlp", "AdamW(model.parameters()", "AdamW(list(model.parameters()) + list(model.head.parameters())", "duplicate-params"),
    _m("mlp-no-step", "mlp", STEP, "", "optimizer-step-missing"),
    _m("gpt-no-step", "gpt", "    optimizer.step()\n", "", "optimizer-step-missing"),
    _m("cnn-step-uncalled", "cnn", STEP, "        optimizer.step\n", "optimizer-step-missing"),
    _m("mlp-detached-encoder", "mlp", "x = self.drop(F.relu(self.second(x)))", "x = self.drop(F.relu(self.second(x.detach())))", "graph-break-detach"),
    _m("cnn-detached-features", "cnn", "x = self.features(x).flatten(1)", "x = self.features(x).flatten(1).data", "graph-break-detach"),
    _m("vit-no-grad-patch", "vit", "x = self.patch(x).flatten(2).transpose(1, 2)", "with torch.no_grad():\n            x = self.patch(x).flatten(2).transpose(1, 2)", "graph-break-detach"),
    _m("mlp-plain-list", "mlp", "self.second = nn.Linear(64, 64)", "self.hidden = [nn.Linear(64, 64)]\n        self.second = lambda x: self.hidden[0](x)", "modules-in-plain-list"),
    _m("gpt-plain-list", "gpt", "nn.ModuleList([Block(dim, heads) for _ in range(depth)])", "[Block(dim, heads) for _ in range(depth)]", "modules-in-plain-list"),
    _m("mlp-module-in-forward", "mlp", "F.relu(self.second(x))", "F.relu(nn.Linear(64, 64)(x))", "module-in-forward"),
    _m("mlp-bf16-small-rate", "mlp", "AdamW(model.parameters(), lr=3e-3", "AdamW(half(model).parameters(), lr=1e-6", "update-lost-to-rounding"),
    _m("mlp-zero-init", "mlp", "model = Net()", "model = Net()\nfor layer in (model.second, model.head):\n    nn.init.zeros_(layer.weight)\n    nn.init.zeros_(layer.bias)", "zero-init-dead", "gradient-flow"),
    # modes and evaluation
    _m("mlp-train-not-restored", "mlp", "    model.train()\n    total", "    total", "train-not-restored"),
    _m("cnn-train-not-restored", "cnn", "    model.train()\n", "", "train-not-restored"),
    _m("resnet-train-not-restored", "resnet", "    model.train()\n", "", "train-not-restored"),
    _m("gpt-train-not-restored", "gpt", "    model.train()\n    return sum", "    return sum", "train-not-restored"),
    _m("mlp-eval-missing", "mlp", "    model.eval()\n", "", "eval-missing"),
    _m("cnn-eval-missing", "cnn", "    model.eval()\n", "", "eval-missing"),
    _m("mlp-eval-graph", "mlp", "    with torch.no_grad():\n", "    if True:\n", "eval-without-no-grad"),
    _m("vae-eval-graph", "vae", "    with torch.no_grad():\n", "    if True:\n", "eval-without-no-grad"),
    _m("mlp-functional-dropout", "mlp", "self.drop(F.relu(self.second(x)))", "F.dropout(F.relu(self.second(x)), 0.3)", "functional-dropout-no-training"),
    _m("gpt-attention-dropout-in-eval", "gpt", "is_causal=True", "dropout_p=0.1, is_causal=True", "functional-dropout-no-training"),
    _m("cnn-eval-on-train", "cnn", "for x, y in val_loader", "for x, y in train_loader", "split-leak"),
    _m("mlp-overlapping-split", "mlp", "train_set, val_set = random_split(TensorDataset(inputs, labels), [512, 128])", "whole = TensorDataset(inputs, labels)\ntrain_set = torch.utils.data.Subset(whole, range(512))\nval_set = torch.utils.data.Subset(whole, range(448, 640))", "split-leak"),
    # losses
    _m("mlp-double-softmax", "mlp", "return self.head(x)", "return self.head(x).softmax(1)", "softmax-before-cross-entropy"),
    _m("vit-double-softmax", "vit", "[:, 0])\n", "[:, 0]).softmax(-1)\n", "softmax-before-cross-entropy"),
    _m("resnet-double-softmax", "resnet", "mean((2, 3)))", "mean((2, 3))).softmax(1)", "softmax-before-cross-entropy"),
    _m("cnn-nll-on-logits", "cnn", "return F.log_softmax(x, dim=1)", "return x", "nll-without-log"),
    _m("cnn-nll-on-probabilities", "cnn", "F.log_softmax(x, dim=1)", "F.softmax(x, dim=1)", "nll-without-log"),
    _m("cnn-softmax-over-batch", "cnn", "F.log_softmax(x, dim=1)", "F.log_softmax(x, dim=0)", "softmax-wrong-dim", "nll-without-log"),
    _m("dcgan-double-sigmoid", "dcgan", "criterion = nn.BCELoss()", "criterion = nn.BCEWithLogitsLoss()", "sigmoid-before-bce-logits"),
    _m("dcgan-bce-on-logits", "dcgan", "            nn.Sigmoid(),\n", "", "bce-on-logits"),
    _m("vae-swapped-bce", "vae", "binary_cross_entropy(reconstruction, x,", "binary_cross_entropy(x, reconstruction,", "loss-arg-swap"),
    _m("regression-broadcast", "regression", "loss = criterion(prediction, y)", "loss = criterion(prediction, y.squeeze(1))", "mse-broadcast"),
    _m("regression-hand-written-broadcast", "regression", "loss = criterion(prediction, y)", "loss = ((prediction - y.squeeze(1)) ** 2).mean()", "mse-broadcast"),
    _m("mlp-relu-logits", "mlp", "return self.head(x)", "return F.relu(self.head(x))", "relu-before-loss"),
    _m("mlp-soft-targets", "mlp", "loss = F.cross_entropy(output, y)", "loss = F.cross_entropy(output, F.one_hot(y, 3).float() * 0.7)", "soft-targets-do-not-sum-to-one"),
    _m("mlp-loss-without-graph", "mlp", "F.cross_entropy(output, y)", "F.cross_entropy(output.detach(), y)", "backward-no-grad-graph"),
    _m("mlp-kl-on-probabilities", "mlp", "F.cross_entropy(output, y)", "F.kl_div(output.softmax(1), F.one_hot(y, 3).float(), reduction='batchmean')", "kl-div-input-not-log"),
    _m("mlp-bad-head", "mlp", "model = Net()", "model = Net()\nnn.init.normal_(model.head.weight, std=5)", "loss-at-start"),
    _m("gpt-no-causal-mask", "gpt", "is_causal=True", "is_causal=False", "causal-mask-missing"),
    _m("gpt-double-shift", "gpt", "source[i + 1 : i + 1 + block]", "source[i + 2 : i + 2 + block]", "lm-double-shift"),
    _m("gpt-no-shift", "gpt", "source[i + 1 : i + 1 + block]", "source[i : i + block]", "lm-double-shift"),
    # protocol
    _m("regression-clip-before-unscale", "regression", "            scaler.unscale_(optimizer)\n", "", "clip-before-unscale"),
    _m("regression-no-update", "regression", "            scaler.update()\n", "", "scaler-update-missing"),
    _m("mlp-clip-after-step", "mlp", "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()\n", "        optimizer.step()\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", "clip-wrong-place"),
    _m("mlp-scheduler-first", "mlp", "        optimizer.step()\n        scheduler.step()\n", "        scheduler.step()\n        optimizer.step()\n", "scheduler-before-optimizer"),
    _m("resnet-short-schedule", "resnet", "total_steps=3 * len(train_loader) // accumulate", "total_steps=len(train_loader) // accumulate - 1", "scheduler-cadence-mismatch"),
    _m("vit-zero-rate", "vit", "min(1, (step + 1) / 8)", "0 * min(1, (step + 1) / 8)", "lr-stuck-at-zero"),
    _m("cnn-tiny-rate", "cnn", "lr=0.05", "lr=1e-10", "update-ratio", "step-changes-nothing", fixed=True),
    _m("mlp-huge-rate", "mlp", "lr=3e-3", "lr=3.0", "update-ratio", "fixed-batch-not-learned", fixed=True),
    _m("mlp-loss-sign", "mlp", "loss = F.cross_entropy(output, y)", "loss = -F.cross_entropy(output, y)", "loss-sign-wrong"),
    # state
    _m("mlp-best-state-alias", "mlp", "copy.deepcopy(model.state_dict())", "model.state_dict()", "best-state-alias"),
    _m("mlp-best-state-shallow", "mlp", "copy.deepcopy(model.state_dict())", "model.state_dict().copy()", "best-state-alias"),
    _m("resnet-ema-alias", "resnet", "ema = copy.deepcopy(model).requires_grad_(False)", "ema = model", "best-state-alias"),
    _m("mlp-checkpoint-without-scheduler", "mlp", '            "scheduler": scheduler.state_dict(),\n', "", "resume-incomplete"),
    _m("mlp-checkpoint-damaged", "mlp", '"model": model.state_dict()', '"model": {k: v for k, v in model.state_dict().items() if "second" not in k}', "checkpoint-does-not-restore"),
    _m("mlp-loss-keeps-graph", "mlp", "total += loss.item()", "total += loss", "loss-accumulate-graph"),
    _m("regression-loss-list", "regression", "running += loss.item()", "running = [*running, loss] if running else [loss]", "loss-accumulate-graph"),
    _m("vae-nan", "vae", "logvar.exp())", "logvar.exp() + torch.sqrt(mean.sum() * 0 - 1))", "nonfinite-values", fixed=True),
    _m("lstm-not-detached", "lstm", "        state = tuple(s.detach() for s in state)\n", "", "double-backward-shared-graph"),
    # data
    _m("vit-bytes", "vit", "images += labels[:, None, None, None] * 0.5", "images = (images.clamp(-2, 2) + 2) * 63", "input-not-normalised"),
    _m("vit-batch-first", "vit", "batch_first=True, ", "batch_first=False, ", "mha-batch-first", "batch-mixing"),
    _m("mlp-batch-mixing", "mlp", "return self.head(x)", "return self.head(x - x.mean(0))", "batch-mixing"),
    _m("regression-worker-copies", "regression", "x = self.inputs[index]\n", "self.rng = getattr(self, 'rng', None) or torch.Generator().manual_seed(0)\n        x = torch.rand(6, generator=self.rng)\n", "worker-duplicates"),
    _m("mlp-one-class", "mlp", "labels = (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long()", "labels = torch.zeros(640).long()", "class-balance"),
    _m("mlp-dead-relu", "mlp", "model = Net()", "model = Net()\nnn.init.constant_(model.first.bias, -30.0)", "dead-units"),
    _m("regression-saturated", "regression", "criterion =", "nn.init.normal_(model[0].weight, std=60)\n    criterion =", "saturated-activations"),
    # several ranks
    _m("ddp-bypassed", "ddp", "F.cross_entropy(model(x), y)", "F.cross_entropy(model.module(x), y)", "ddp-bypass-forward"),
    _m("ddp-not-wrapped", "ddp", "model = DistributedDataParallel(model)\n", "", "ddp-not-wrapped", "ranks-diverge"),
    _m("ddp-same-data", "ddp", "batch_size=8, sampler=sampler", "batch_size=8", "ranks-same-data"),
    _m("ddp-no-set-epoch", "ddp", "    sampler.set_epoch(epoch)\n", "", "sampler-set-epoch-missing"),
    _m("ddp-clip-on-one-rank", "ddp", CLIP_DDP, f"        if dist.get_rank() == 0:\n    {CLIP_DDP.replace('1.0', '0.01')}", "ranks-diverge"),
    _m("ddp-cast-after-wrapping", "ddp", "DistributedDataParallel(model)\n", "DistributedDataParallel(model)\nmodel.double()\nmodel.float()\n", "ranks-diverge", "ddp-move-after-wrap"),
    _m("ddp-no-zero-grad", "ddp", ZERO, "", "zero-grad-missing"),
    # the TrainCheck study
    _m("mlp-updates-stop", "mlp", "best, best_state = 0.0, None", "original, seen = optimizer.step, []\ndef sometimes(*given):\n    seen.append(1)\n    for group in optimizer.param_groups:\n        group['lr'] = group['lr'] * (len(seen) < 5) + 1e-30\n    return original(*given)\noptimizer.step = sometimes\nbest, best_state = 0.0, None", "step-changes-nothing"),
    _m("cnn-spectral-norm-eval-first", "cnn", "model = Net()", "model = Net()\ntorch.nn.utils.spectral_norm(model.head)\nmodel.eval()(images[:4])", "spectral-norm-first-in-eval"),
    _m("diffusion-autocast-lost", "diffusion", "        return self.body(self.inner(x) + self.time(t))", "        with torch.autocast('cpu', enabled=False):\n            return self.body(self.inner(x) + self.time(t))", "autocast-ineffective"),
    _m("regression-merged-batch", "regression", "shuffle=True, num_workers=2)", "shuffle=True, collate_fn=lambda rows: (torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows]).reshape(1, -1)))", "batch-size-disagrees"),
]  # fmt: skip
