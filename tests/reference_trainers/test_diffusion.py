"""Diffusion and flow matching: targets fit paths, samplers, distances, exact resumption."""

from pathlib import Path
from typing import Any

import pytest

from .trainer import finish, load

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ddpm() -> Any:
    return load("diffusion/ddpm.py")


@pytest.fixture(scope="module")
def flow() -> Any:
    return load("diffusion/flow_matching.py")


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("predict", ["noise", "velocity"])
def test_the_right_prediction_gives_the_picture_back(
    ddpm: Any, schedule: str, predict: str
) -> None:
    settings = ddpm.Settings(schedule=schedule, predict=predict)
    diffusion = ddpm.Diffusion(settings, torch.device("cpu"))
    images, noise = torch.rand(50, 1, 8, 8), torch.randn(50, 1, 8, 8)
    t = torch.linspace(0, 900, 50).long()
    x_t, target = diffusion.noisy(images, noise, t)
    torch.testing.assert_close(diffusion.clean(x_t, target, t), images, atol=1e-3, rtol=0)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("steps", [100, 1000])
def test_schedules_go_from_picture_to_noise(ddpm: Any, schedule: str, steps: int) -> None:
    settings = ddpm.Settings(schedule=schedule, timesteps=steps)
    diffusion = ddpm.Diffusion(settings, torch.device("cpu"))
    assert (diffusion.alpha.diff() < 0).all()
    assert diffusion.alpha[0] > 0.99
    assert diffusion.alpha[-1] < 0.02
    torch.testing.assert_close(diffusion.alpha**2 + diffusion.sigma**2, torch.ones(steps))


def test_ddim_follows_a_perfect_model_to_its_picture(ddpm: Any) -> None:
    """All data being one picture, the best prediction is known; every path must end there."""
    settings = ddpm.Settings(predict="noise", sample_steps=10)
    diffusion = ddpm.Diffusion(settings, torch.device("cpu"))
    picture = torch.rand(1, 1, 8, 8) * 2 - 1

    class Perfect(torch.nn.Module):
        def forward(self, x: Any, t: Any, labels: Any) -> Any:
            alpha, sigma = diffusion.coefficients(t)
            return (x - alpha * picture) / sigma

    labels = torch.zeros(3, dtype=torch.long)
    samples = diffusion.sample(Perfect(), torch.randn(3, 1, 8, 8), labels, 10, settings)
    torch.testing.assert_close(samples, picture.expand(3, -1, -1, -1), atol=1e-2, rtol=0)


def test_no_class_has_a_row_of_its_own(ddpm: Any, flow: Any) -> None:
    for model in (ddpm.UNet(1, 10, 24), flow.DiT(1, 10, flow.Settings())):
        assert model.null == 10
        assert model.label.num_embeddings == 11


def test_the_velocity_is_the_derivative_of_the_path(flow: Any) -> None:
    images, noise = torch.rand(4, 1, 8, 8).double(), torch.randn(4, 1, 8, 8).double()
    t = torch.rand(4).double() * 0.9
    before, velocity = flow.point_on_path(images, noise, t)
    after, _ = flow.point_on_path(images, noise, t + 1e-3)
    torch.testing.assert_close((after - before) / 1e-3, velocity)
    assert torch.equal(flow.point_on_path(images, noise, torch.zeros(4))[0], noise)
    assert torch.equal(flow.point_on_path(images, noise, torch.ones(4))[0], images)


@pytest.mark.parametrize("time_sampling", ["uniform", "logit_normal"])
def test_a_batch_of_one_keeps_its_axis(flow: Any, time_sampling: str) -> None:
    settings = flow.Settings(time_sampling=time_sampling)
    t = flow.draw_times(1, settings, torch.device("cpu"))
    assert t.shape == (1,)
    assert 0 < t.item() < 1
    model = flow.DiT(1, 10, settings)
    assert model(torch.randn(1, 1, 8, 8), t, torch.tensor([3])).shape == (1, 1, 8, 8)


def test_heun_follows_a_straight_flow_to_its_end(flow: Any) -> None:
    class Straight(torch.nn.Module):
        def forward(self, x: Any, t: Any, labels: Any) -> Any:
            return torch.full_like(x, 0.25)

    noise = torch.zeros(2, 1, 8, 8)
    labels = torch.zeros(2, dtype=torch.long)
    samples = flow.sample(Straight(), noise, labels, 10, flow.Settings())
    torch.testing.assert_close(samples, noise + 0.25)


def test_transformer_output_is_cut_back_into_the_same_places(flow: Any) -> None:
    """A change in one square of the input changes that square of an all-local model's output."""
    torch.manual_seed(0)
    model = flow.DiT(1, 10, flow.Settings())  # gates at zero: no square sees another
    torch.nn.init.normal_(model.out.weight)
    x = torch.randn(1, 1, 8, 8)
    changed = x.clone()
    changed[..., 2:4, 6:8] += 1
    t, label = torch.tensor([0.5]), torch.tensor([1])
    difference = (model(changed, t, label) - model(x, t, label))[0, 0] != 0
    expected = torch.zeros(8, 8, dtype=torch.bool)
    expected[2:4, 6:8] = True
    assert torch.equal(difference, expected)


def test_frechet_distance(ddpm: Any) -> None:
    torch.manual_seed(0)
    one = torch.randn(4000, 8)
    assert ddpm.frechet_distance(one, one) == pytest.approx(0, abs=1e-6)
    assert ddpm.frechet_distance(one, one + 2) == pytest.approx(8 * 4, rel=1e-6)
    # N(0, 1) and N(0, 9) in 8 dimensions: 8 * (3 - 1)^2
    assert ddpm.frechet_distance(one, 3 * torch.randn(4000, 8)) == pytest.approx(32, rel=0.05)


def test_the_average_starts_fast_and_ends_slow(ddpm: Any) -> None:
    average = ddpm.warmed_up_average(0.9)
    decays = []
    for updates in (0, 1, 10, 1000):
        old = [torch.ones(3), torch.tensor(5)]
        average(old, [torch.zeros(3), torch.tensor(7)], torch.tensor(updates))
        decays.append(old[0][0].item())
        assert old[1] == 7
    assert decays == sorted(decays)
    assert decays == pytest.approx([0.1, 2 / 11, 0.55, 0.9])


@pytest.mark.parametrize(
    "flags",
    [
        ("diffusion/ddpm.py", "--schedule=linear", "--predict=noise"),
        ("diffusion/ddpm.py", "--amp", "--flip"),
        ("diffusion/flow_matching.py", "--time-sampling=logit_normal"),
        ("diffusion/flow_matching.py", "--amp"),
    ],
)
def test_options_run(flags: tuple[str, ...], tmp_path: Path) -> None:
    recipe, *rest = flags
    finish(recipe, tmp_path, *rest, "--steps=4", "--eval-samples=64", "--sample-steps=2")
    assert (tmp_path / "samples_000000004.png").stat().st_size > 0
