"""The formats that people read: what the golden files do not show."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from trainlint.finding import Applicability, Finding, Fix, Severity
from trainlint.output import OutputContext, render, render_statistics
from trainlint.output.code_frame import code_frame


def frame(finding: Finding, lines: Sequence[str]) -> str:
    return "\n".join(code_frame(finding, lines, colour=False))


def test_quiet_leaves_out_the_summary(sample_run: OutputContext) -> None:
    quiet = dataclasses.replace(sample_run, quiet=True)
    assert "Found" not in render("full", quiet)
    assert "Found" not in render("concise", quiet)
    assert "Found" not in render_statistics(quiet)


def test_quiet_and_clean_prints_nothing(clean_run: OutputContext) -> None:
    quiet = dataclasses.replace(clean_run, quiet=True)
    assert render("full", quiet) == render("concise", quiet) == ""


def test_summary_counts_what_the_options_of_this_run_fix(sample_run: OutputContext) -> None:
    allowed = dataclasses.replace(sample_run, unsafe_fixes=True, fixed_count=1)
    assert render("concise", allowed).splitlines()[-1] == (
        "Fixed 1 finding. Found 1 error, 1 warning, 1 info (2 fixable with `--fix --unsafe-fixes`)."
    )


def test_summary_when_all_fixes_are_unsafe(make_finding: Callable[..., Finding]) -> None:
    finding = make_finding(fix=Fix(Applicability.UNSAFE, "do it"))
    last = render("concise", OutputContext([finding, finding])).splitlines()[-1]
    assert last == "Found 2 errors, 0 warnings (2 fixable with `--fix --unsafe-fixes`)."


def test_a_file_that_is_gone_is_reported_without_a_frame(
    make_finding: Callable[..., Finding],
) -> None:
    text = render("full", OutputContext([make_finding(path="no/such/file.py")]))
    assert "--> no/such/file.py:5:2\nhelp:" in text


def test_wide_characters_are_underlined_where_they_are(
    make_finding: Callable[..., Finding],
) -> None:
    finding = make_finding(line=1, end_line=1, column=8, end_column=12)
    assert frame(finding, ["学习 = f(损失e\u0301)"]).splitlines()[1:3] == [
        "1 | 学习 = f(损失e\u0301)",
        "  |          ^^^^^",
    ]


def test_a_place_over_several_lines_is_underlined_to_the_end_of_the_first(
    make_finding: Callable[..., Finding],
) -> None:
    finding = make_finding(line=1, column=5, end_line=2, end_column=7)
    assert frame(finding, ["x = call(  ", "    1)"]).splitlines() == [
        "  |",
        "1 | x = call(",
        "  |     ^^^^^",
        "2 |     1)",
        "  |",
    ]


def test_a_very_long_line_is_shown_around_the_finding(
    make_finding: Callable[..., Finding],
) -> None:
    line = "a" * 3_000_000 + "loss" + "b" * 2_000_000
    finding = make_finding(line=1, end_line=1, column=3_000_001, end_column=3_000_005)
    shown, underline = frame(finding, [line]).splitlines()[1:3]
    assert len(shown) < 200
    assert shown.index("loss") == underline.index("^^^^")


def test_escape_sequences_in_the_source_do_not_reach_the_terminal(
    make_finding: Callable[..., Finding],
) -> None:
    finding = make_finding(line=1, end_line=1, column=1, end_column=2)
    assert "\x1b" not in frame(finding, ["x = '\x1b[2J'  \x0c"])


@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\r\n")), max_size=6),
    line=st.integers(1, 8),
    column=st.integers(1, 300),
    length=st.integers(0, 300),
)
def test_any_place_in_any_text_can_be_shown(
    lines: list[str], line: int, column: int, length: int
) -> None:
    finding = Finding(
        "a.py",
        line,
        column,
        line,
        column + length,
        "TLX001",
        "rule",
        Severity.ERROR,
        "m",
        "h",
        None,
        line,
        line,
    )
    shown = code_frame(finding, lines, colour=False)
    assert bool(shown) == (line <= len(lines))
    if shown:
        assert any("^" in each for each in shown)
