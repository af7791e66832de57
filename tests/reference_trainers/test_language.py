"""GPT pretraining: packing, document boundaries, bits per byte, exact resumption."""

import math
from pathlib import Path
from typing import Any

import pytest

from .trainer import check_resumes_bit_identically, load

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

BOS = 256


@pytest.fixture(scope="module")
def gpt() -> Any:
    return load("language/gpt.py")


def documents(count: int) -> list[Any]:
    stream = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 90, (count,), generator=stream).tolist()
    return [torch.randint(0, 256, (length,), generator=stream) for length in lengths]


def test_every_row_is_full_and_begins_with_bos(gpt: Any) -> None:
    packed = gpt.PackedRows(documents(400), BOS, gpt.Settings(context=32, batch_size=4))
    for _ in range(30):
        batch = torch.full((4, 33), -1)
        packed.fill_batch(batch)
        assert (batch[:, 0] == BOS).all()
        assert (batch >= 0).all()


def test_an_epoch_gives_every_token_once(gpt: Any) -> None:
    corpus = documents(40)
    packed = gpt.PackedRows(corpus, BOS, gpt.Settings(context=32, batch_size=1))
    seen: list[int] = []
    row = torch.empty(1, 33, dtype=torch.long)
    while packed.fill_batch(row) < 8:
        seen += [token for token in row.flatten().tolist() if token != BOS]
    waiting = [token for piece in packed.waiting for token in piece.tolist() if token != BOS]
    seen += [token for token in row.flatten().tolist() if token != BOS]
    expected = 7 * [token for document in corpus for token in document.tolist()]
    for i in packed.order[: packed.position]:  # drawn in the eighth epoch so far
        expected += corpus[i].tolist()
    assert sorted(seen + waiting) == sorted(expected)


def test_a_resumed_stream_goes_on_where_it_was(gpt: Any) -> None:
    settings = gpt.Settings(context=32, batch_size=4)
    one, other = (gpt.PackedRows(documents(300), BOS, settings) for _ in range(2))
    batch, again = torch.empty(2, 4, 33, dtype=torch.long)
    for _ in range(20):
        one.fill_batch(batch)
    other.load_state_dict(one.state_dict())
    for _ in range(60):
        assert one.fill_batch(batch) == other.fill_batch(again)
        assert torch.equal(batch, again)


@pytest.mark.parametrize("mlp", ["swiglu", "relu2"])
def test_a_document_sees_neither_the_future_nor_its_neighbour(gpt: Any, mlp: str) -> None:
    torch.manual_seed(0)
    model = gpt.GPT(gpt.Settings(context=24, zero_init=False, mlp=mlp), 257, BOS)
    row = torch.randint(0, 256, (1, 24))
    row[0, [0, 10]] = BOS
    logits = model(row)
    neighbour, future = row.clone(), row.clone()
    neighbour[0, 3] = (row[0, 3] + 1) % 256
    future[0, 20] = (row[0, 20] + 1) % 256
    assert torch.equal(model(neighbour)[0, 10:], logits[0, 10:])
    assert torch.equal(model(future)[0, :20], logits[0, :20])
    assert not torch.equal(model(future)[0, 20:], logits[0, 20:])


def test_positions_count_within_a_document(gpt: Any) -> None:
    torch.manual_seed(0)
    model = gpt.GPT(gpt.Settings(context=24, zero_init=False), 257, BOS)
    document = torch.cat([torch.tensor([BOS]), torch.randint(0, 256, (9,))])
    alone = model(document[None])
    packed = model(torch.cat([torch.tensor([BOS]), torch.randint(0, 256, (7,)), document])[None])
    torch.testing.assert_close(packed[:, 8:], alone)


def test_zero_initialised_branches_start_silent(gpt: Any) -> None:
    model = gpt.GPT(gpt.Settings(logit_cap=0.0), 257, BOS)
    tokens = torch.randint(0, 256, (2, 8))
    torch.testing.assert_close(model(tokens), model.head(model.norm(model.embedding(tokens))))
    loud = gpt.GPT(gpt.Settings(logit_cap=0.0, zero_init=False), 257, BOS)
    assert not torch.equal(loud(tokens), loud.head(loud.norm(loud.embedding(tokens))))


def test_logits_stay_below_the_cap(gpt: Any) -> None:
    model = gpt.GPT(gpt.Settings(logit_cap=5.0), 257, BOS)
    torch.nn.init.normal_(model.head.weight, std=50.0)
    assert model(torch.randint(0, 256, (2, 8))).abs().max() <= 5.0


def test_bits_per_byte_of_a_model_that_knows_nothing(gpt: Any) -> None:
    settings = gpt.Settings(context=32, batch_size=4)
    model = gpt.GPT(settings, 257, BOS)
    torch.nn.init.zeros_(model.head.weight)
    token_bytes = torch.ones(257, dtype=torch.long)
    token_bytes[BOS] = 0
    rows = gpt.pack_once(documents(50), BOS, 33)
    bits = gpt.evaluate_bpb(model, rows, token_bytes, settings)
    assert bits == pytest.approx(math.log2(257))
    # Tokens of two bytes: half the bits for each byte, whatever the gaps.
    assert gpt.evaluate_bpb(model, rows, 2 * token_bytes, settings) == pytest.approx(bits / 2)
    assert model.training


def test_validation_rows_hold_every_document_once(gpt: Any) -> None:
    corpus = documents(50)
    rows = gpt.pack_once(corpus, BOS, 33)
    tokens = sorted(token for token in rows.flatten().tolist() if token != BOS)
    assert tokens == sorted(token for document in corpus for token in document.tolist())


def test_token_files(gpt: Any, tmp_path: Path) -> None:
    import numpy as np

    tokens = np.array([7, 1, 2, 3, 7, 4, 7, 5, 6], dtype=np.uint16)
    for name in ("train.bin", "val.bin"):
        tokens.tofile(tmp_path / name)
    np.save(tmp_path / "token_bytes.npy", np.array([1, 1, 1, 1, 1, 1, 1, 0]))
    corpus = gpt.load_corpus(str(tmp_path))
    assert corpus.bos == 7
    assert [corpus.train[i].tolist() for i in range(len(corpus.train))] == [[1, 2, 3], [4], [5, 6]]


def test_killed_and_resumed(tmp_path: Path) -> None:
    flags = ("--steps=40", "--context=48", "--batch-size=4", "--width=32", "--eval-every=16")
    check_resumes_bit_identically("language/gpt.py", tmp_path, *flags)
