"""Fine-tuning: what is frozen stays frozen, merged is equal, masked is masked, exact resumption."""

from pathlib import Path
from typing import Any

import pytest

from .trainer import check_resumes_bit_identically, finish, load

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def transfer() -> Any:
    return load("fine_tuning/transfer.py")


@pytest.fixture(scope="module")
def lora() -> Any:
    return load("fine_tuning/lora.py")


@pytest.fixture(scope="module")
def instruction() -> Any:
    return load("fine_tuning/instruction_tuning.py")


def test_batch_norm_stays_frozen_through_train(transfer: Any) -> None:
    model = transfer.FineTuned(transfer.digit_stages(), 64, 4)
    before = {name: b.clone() for name, b in model.named_buffers()}
    for _ in range(2):
        model.train()
        model(torch.randn(8, 1, 8, 8))
    assert all(torch.equal(b, before[name]) for name, b in model.named_buffers())
    assert model.dropout.training
    model.freeze_statistics = False
    model.train()
    model(torch.randn(8, 1, 8, 8))
    assert not all(torch.equal(b, before[name]) for name, b in model.named_buffers())


def test_unfreezing_goes_from_the_top_down(transfer: Any) -> None:
    model = transfer.FineTuned(transfer.digit_stages(), 64, 4)
    for count in range(5):
        model.train_only_top(count)
        learning = [all(p.requires_grad for p in stage.parameters()) for stage in model.stages]
        assert learning == [False] * (4 - count) + [True] * count
        assert model.head.weight.requires_grad


def test_strategies(transfer: Any) -> None:
    def stages(strategy: str) -> list[int]:
        settings = transfer.Settings(strategy=strategy)
        return [transfer.learning_stages(step, 100, 4, settings) for step in range(100)]

    assert set(stages("head")) == {0}
    assert set(stages("layerwise")) == {4}
    gradual = stages("gradual")
    assert gradual == sorted(gradual)
    assert set(gradual) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("strategy", ["head", "gradual", "layerwise"])
def test_frozen_stages_do_not_move(strategy: str, tmp_path: Path) -> None:
    flags = ("--checkpoint-every=1", "--keep=100", "--epochs=5", "--pretrain-epochs=1")
    flags = (f"--strategy={strategy}", *flags)
    finish("fine_tuning/transfer.py", tmp_path, *flags)
    files = sorted(tmp_path.glob("step_*.pt"))
    first, last = (torch.load(f, weights_only=True)["model"] for f in (files[0], files[-1]))
    moved = {name.split(".")[1] for name in first if not torch.equal(first[name], last[name])}
    assert "weight" in moved  # the head's
    stages = {name for name in moved if name.isdigit()}
    assert stages == (set() if strategy == "head" else {"0", "1", "2", "3"})
    assert all(torch.equal(first[name], last[name]) for name in first if "running" in name)


def test_the_new_task_has_pictures_that_pretraining_never_saw(transfer: Any) -> None:
    (seen, _), (new, _) = transfer.load_source_and_target()
    assert len(seen) + len(new) == 1797
    assert not {picture.numpy().tobytes() for picture in seen} & {
        picture.numpy().tobytes() for picture in new
    }


def test_merged_equals_adapted(lora: Any) -> None:
    torch.manual_seed(0)
    model = lora.SmallViT()
    images = torch.randn(4, 1, 8, 8)
    before = model(images)
    lora.add_lora(model, lora.Settings(), head="heads")
    torch.testing.assert_close(model(images), before)  # adapters begin at nothing
    learning = [name for name, p in model.named_parameters() if p.requires_grad]
    assert learning
    assert all("lora_" in name for name in learning)
    for name, parameter in model.named_parameters():
        if "lora_b" in name:
            torch.nn.init.normal_(parameter)
    adapted = model(images)
    assert not torch.allclose(adapted, before)
    lora.merge_lora(model)
    assert not any(isinstance(m, lora.LoRALinear) for m in model.modules())
    torch.testing.assert_close(model(images), adapted, atol=1e-4, rtol=1e-4)


def test_only_adapters_move(tmp_path: Path) -> None:
    flags = ("--checkpoint-every=1", "--keep=100", "--steps=6", "--pretrain-epochs=1")
    finish("fine_tuning/lora.py", tmp_path, *flags)
    files = sorted(tmp_path.glob("step_*.pt"))
    first, last = (torch.load(f, weights_only=True)["model"] for f in (files[0], files[-1]))
    moved = {name for name in first if not torch.equal(first[name], last[name])}
    assert moved == {name for name in first if "lora_" in name}
    adapters = torch.load(tmp_path / "adapters.pt", weights_only=True)
    assert set(adapters) == moved


def test_the_request_is_masked_and_the_end_is_not(instruction: Any) -> None:
    tokens, targets = instruction.tokens_and_targets(instruction.Pair(b"ask", b"answer"))
    assert tokens.tolist() == [instruction.BEGIN, *b"ask", instruction.ANSWER, *b"answer"]
    assert targets.tolist() == [instruction.IGNORE] * 4 + [*b"answer", instruction.END]


def test_padding_changes_nothing(instruction: Any) -> None:
    torch.manual_seed(0)
    model = instruction.GPT(instruction.Settings())
    pairs = [instruction.Pair(b"a", b"bc"), instruction.Pair(b"longer request", b"longer answer")]
    tokens, targets = instruction.collate(pairs)
    assert (tokens[0] == instruction.PAD).sum() == (targets[0] == instruction.IGNORE).sum() - 2

    def nats(batch: list[Any]) -> Any:
        tokens, targets = instruction.collate(batch)
        return torch.nn.functional.cross_entropy(
            model(tokens).flatten(0, 1), targets.flatten(), reduction="sum"
        )

    torch.testing.assert_close(nats(pairs), nats(pairs[:1]) + nats(pairs[1:]))


@pytest.mark.parametrize(
    "flags",
    [
        ("fine_tuning/transfer.py", "--epochs=10", "--pretrain-epochs=1"),
        ("fine_tuning/lora.py", "--steps=45", "--pretrain-epochs=1"),
        ("fine_tuning/instruction_tuning.py", "--steps=40", "--pretrain-steps=3", "--width=32"),
    ],
)
def test_killed_and_resumed(flags: tuple[str, ...], tmp_path: Path) -> None:
    recipe, *rest = flags
    check_resumes_bit_identically(recipe, tmp_path, *rest)
