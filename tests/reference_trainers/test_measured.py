"""What the table of measurements says of a change beside the recipe as it is."""

from dataclasses import replace

import pytest

from .measured import Row, rows_in, table

PLAIN = Row("vision/vit.py", "", "val_accuracy >= 0.94", 0.96, 0.95, 0.97, 40)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.93, 0.92, 0.94), "worse"),
        ((0.99, 0.98, 1.0), "better"),
        ((0.94, 0.90, 0.95), "no difference visible at this size"),  # the spreads touch
    ],
)
def test_a_difference_counts_where_the_spreads_do_not_overlap(
    values: tuple[float, float, float], verdict: str
) -> None:
    median, lowest, highest = values
    row = replace(PLAIN, change="--no-mix", median=median, lowest=lowest, highest=highest)
    assert row.beside(PLAIN) == verdict


def test_less_is_better_where_the_target_says_so() -> None:
    plain = replace(PLAIN, target="val_loss <= 0.3", median=0.2, lowest=0.1, highest=0.25)
    row = replace(plain, change="--no-mix", median=0.5, lowest=0.4, highest=0.6)
    assert row.beside(plain) == "worse"


def test_the_target_has_to_be_reached_by_every_seed() -> None:
    assert PLAIN.is_reached
    assert not replace(PLAIN, lowest=0.93).is_reached


def test_the_table_is_read_as_it_was_written() -> None:
    rows = [PLAIN, replace(PLAIN, change="--warmup=0 --no-mix", lowest=0.9)]
    assert rows_in(table(rows)) == rows
