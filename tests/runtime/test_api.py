"""The same checks from Python."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


def _parts() -> tuple[object, object, object, object]:
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    x = torch.randn(128, 4)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, loader, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)


def test_probe_restores_the_model() -> None:
    from trainlint.runtime import probe

    model, loader, loss_fn, optimizer = _parts()
    before = {k: v.clone() for k, v in model.state_dict().items()}  # type: ignore[attr-defined]
    report = probe(model, loader, loss_fn, optimizer)
    assert not report.failed
    assert len(report.evidence.trace.steps) == 10
    after = model.state_dict()  # type: ignore[attr-defined]
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_the_package_itself_offers_the_probe() -> None:
    import trainlint
    from trainlint import runtime

    assert trainlint.probe is runtime.probe
    assert trainlint.assert_trains is runtime.assert_trains


def test_torch_is_left_as_it_was() -> None:
    from trainlint.runtime import probe

    names = ("cross_entropy", "relu", "dropout")
    before = [getattr(torch.nn.functional, n) for n in names] + [torch.autograd.backward]
    probe(*_parts())
    after = [getattr(torch.nn.functional, n) for n in names] + [torch.autograd.backward]
    assert before == after


def test_assert_trains_names_the_fault() -> None:
    from torch import nn

    from trainlint.runtime import ProbeFailedError, assert_trains

    model, loader, loss_fn, optimizer = _parts()
    assert_trains(model, loader, loss_fn, optimizer)
    wrong = nn.Sequential(model, nn.Softmax(dim=1))  # type: ignore[arg-type]
    with pytest.raises(ProbeFailedError, match="softmax-before-cross-entropy"):
        assert_trains(wrong, loader, loss_fn, optimizer)
