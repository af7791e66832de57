"""What can be said about the trainers without running them: their shape, and their index."""

import ast
import re

import pytest

from .measured import Row, rows_in
from .seed_map import README, SEED_LENGTHS, TRAINERS, end_of_definition, read_map
from .seed_map import Row as MapRow

FILES = sorted(
    path.relative_to(TRAINERS).as_posix()
    for path in TRAINERS.glob("*/*.py")
    if path.name != "__init__.py"
)


@pytest.mark.parametrize("name", FILES)
def test_docstring_says_what_when_source_expected_and_full_scale(name: str) -> None:
    doc = ast.get_docstring(ast.parse((TRAINERS / name).read_text(encoding="utf-8")))
    assert doc is not None
    for heading in ("When to use", "Source", "Expected", "Full scale"):
        assert re.search(rf"^{heading} ", doc, flags=re.MULTILINE), heading
    assert len(doc.splitlines()) <= 32, "more than one screen"


@pytest.mark.parametrize("name", FILES)
def test_a_copy_runs_on_its_own(name: str) -> None:
    tree = ast.parse((TRAINERS / name).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            assert (node.module or "").split(".")[0] not in ("trainlint", "reference_trainers")
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] != "trainlint" for alias in node.names)


@pytest.mark.parametrize("name", FILES)
def test_settings_are_frozen_and_follow_the_conventions(name: str) -> None:
    tree = ast.parse((TRAINERS / name).read_text(encoding="utf-8"))
    settings = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings"
    )
    assert [ast.unparse(decorator) for decorator in settings.decorator_list] == [
        "dataclass(frozen=True)"
    ]
    names = {ast.unparse(node.target) for node in settings.body if isinstance(node, ast.AnnAssign)}
    assert {"data", "device", "steps", "seed", "out", "resume", "log", "amp"} <= names


@pytest.mark.parametrize("name", FILES)
def test_no_suppression(name: str) -> None:
    text = (TRAINERS / name).read_text(encoding="utf-8")
    assert "trainlint:" not in text


@pytest.mark.parametrize("name", FILES)
def test_every_trainer_is_in_the_index(name: str) -> None:
    assert f"]({name})" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("row", read_map(), ids=lambda row: f"{row.seed}{row.first}-{row.last}")
def test_the_map_points_at_lines_that_show_it(row: MapRow) -> None:
    lines = row.lines()
    assert len(lines) == row.end - row.start + 1, "past the end of the file"
    assert any(row.token in line for line in lines), (
        f"`{row.token}` is not in {row.file} {row.start}-{row.end}: "
        "run python tests/reference_trainers/seed_map.py"
    )
    if row.file.endswith(".py") and (whole := end_of_definition(row.file, row.start)):
        assert row.end == whole, "a part of a function, or more than it"


@pytest.mark.parametrize("seed", SEED_LENGTHS)
def test_no_line_of_the_seeds_is_without_a_row(seed: str) -> None:
    rows = [row for row in read_map() if row.seed == seed]
    covered = {line for row in rows for line in range(row.first, row.last + 1)}
    assert covered == set(range(1, SEED_LENGTHS[seed] + 1))


@pytest.mark.parametrize("name", FILES)
def test_the_targets_stated_are_one(name: str) -> None:
    """In the summary that the trainer prints, in the index, and in what was measured."""
    program = (TRAINERS / name).read_text(encoding="utf-8")
    printed = re.findall(r'"target: +(\w+ [<>]= [\d.]+)"', program)
    text = README.read_text(encoding="utf-8")
    indexed = re.findall(rf"\]\({name}\).*\| (\w+ [<>]= [\d.]+) \|$", text, flags=re.MULTILINE)
    assert indexed == printed
    of_name, sign, value = printed[0].split()
    for row in rows_in(text):
        if row.recipe == name:
            assert row.target == f"{of_name} {sign} {float(value):g}"


@pytest.mark.parametrize(
    "row", rows_in(README.read_text("utf-8")), ids=lambda row: f"{row.recipe} {row.change}"
)
def test_what_was_measured_reaches_the_target(row: Row) -> None:
    assert row.lowest <= row.median <= row.highest
    if not row.change:
        assert row.is_reached
        assert row.seconds < 60
