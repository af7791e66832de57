"""Suppression comments: which findings they hide, which are unused, and how they are written."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainlint.finding import Applicability, Finding, Severity
from trainlint.rule import Report, Rule
from trainlint.scout import text
from trainlint.suppression import Suppressions, add_ignores, remove_unused


class _SampleRule(Rule):
    severity = Severity.ERROR
    scout = text("")
    help = ""

    def check(self, file: Any) -> Iterator[Report]:
        yield from ()


class ZeroGradMissing(_SampleRule):
    code = "TLG001"


class EvalMissing(_SampleRule):
    code = "TLM001"


class SlowLoader(_SampleRule):
    code = "TLS001"
    severity = Severity.INFO


def _unused_suppression() -> Rule:
    module = importlib.import_module("trainlint.rules.suppressions.unused_suppression")
    rule: Rule = module.UnusedSuppression()
    return rule


RULES = [ZeroGradMissing(), EvalMissing(), SlowLoader(), _unused_suppression()]
DEFAULT = {"zero-grad-missing", "eval-missing", "unused-suppression"}
CODES = {rule.name: rule.code for rule in RULES}


def finding(line: int, rule: str = "zero-grad-missing", lines: tuple[int, int] = (0, 0)) -> Finding:
    first, last = lines if lines != (0, 0) else (line, line)
    return Finding(
        path="train.py",
        line=line,
        column=1,
        end_line=line,
        end_column=2,
        code=CODES[rule],
        rule=rule,
        severity=Severity.ERROR,
        message="",
        help="",
        fix=None,
        statement_line=first,
        statement_end_line=last,
    )


def covers(text: str, *asked: Any, **keywords: Any) -> bool:
    return Suppressions(text, RULES).covers(finding(*asked, **keywords))


def unused(
    text: str, suppressed: Iterable[Finding] = (), active: Iterable[str] = DEFAULT
) -> list[str]:
    found = Suppressions(text, RULES).unused("train.py", suppressed, set(active))
    return [each.finding.message for each in found]


def cleaned(text: str, *suppressed: Finding) -> str:
    suppressions = Suppressions(text, RULES)
    return remove_unused(text, suppressions.unused("train.py", suppressed, DEFAULT))


class TestCovers:
    @pytest.mark.parametrize(
        "comment",
        [
            "# trainlint: ignore[zero-grad-missing]",
            "# trainlint: ignore[TLG001]",
            "# trainlint:ignore[ tlg001 ]",
            "#trainlint: ignore [eval-missing, zero-grad-missing]",
            "# trainlint: ignore",
            "# trainlint: ignore -- accumulates on purpose",
            "# trainlint: ignore[TLG001] accumulates on purpose",
            "# type: ignore  # trainlint: ignore[TLG001]",
            "# trainlint: ignore[TLG001]  # noqa: E501",
            "# trainlint: file-ignore[zero-grad-missing]",
            "# trainlint: file-ignore",
            "# noqa",
            "# NoQA",
            "#noqa : see below",
            "# noqa: TLG001",
            "# noqa:E501,TLG001",
            "# noqa: E501 tlg001",
            "# noqa: TLG0",
        ],
    )
    def test_hides(self, comment: str) -> None:
        assert covers(f"step()  {comment}\n", 1)

    @pytest.mark.parametrize(
        "comment",
        [
            "# trainlint: ignore[eval-missing]",
            "# trainlint: ignore[]",
            "# trainlint: ignore[zero-grad-missing",
            "# trainlint: ignore-zero",
            "# trainlint: file-ignore[TLM001]",
            "# trainlint ignore",
            "# noqa: E501",
            "# noqa: E501 because TLG001 is meant elsewhere",
            "# noqable",
            "# flake8: noqa",
            "# nothing to ignore",
        ],
    )
    def test_does_not_hide(self, comment: str) -> None:
        assert not covers(f"step()  {comment}\n", 1)

    def test_any_line_of_the_statement(self) -> None:
        text = "step(\n    a,  # trainlint: ignore[TLG001]\n    b,\n)\n"
        assert covers(text, 1, lines=(1, 4))
        assert not covers(text, 5)

    def test_line_above(self) -> None:
        text = "# trainlint: ignore[TLG001]\nstep()\nstep()\n"
        assert covers(text, 2)
        assert not covers(text, 3)

    def test_comment_block_above(self) -> None:
        text = "if x:\n    # trainlint: ignore[TLG001]\n    # sums over the batches\n    step()\n"
        assert covers(text, 4)

    def test_blank_line_between_parts_them(self) -> None:
        assert not covers("# trainlint: ignore[TLG001]\n\nstep()\n", 3)

    def test_end_of_the_line_above_is_another_statement(self) -> None:
        assert not covers("first()  # trainlint: ignore[TLG001]\nstep()\n", 2)

    def test_noqa_on_the_line_above_means_nothing(self) -> None:
        assert not covers("# noqa: TLG001\nstep()\n", 2)

    def test_comment_below_a_header_belongs_to_the_body(self) -> None:
        text = "for x in y:\n    # trainlint: ignore[TLG001]\n    step()\n"
        assert covers(text, 3)
        assert not covers(text, 1, lines=(1, 2))

    def test_own_line_within_the_statement(self) -> None:
        assert covers("step(\n    # trainlint: ignore[TLG001]\n    a)\n", 1, lines=(1, 3))

    @pytest.mark.parametrize(
        "text",
        [
            'x = "# trainlint: ignore"; step()\n',
            'x = f"{y} # trainlint: ignore"; step()\n',
            'step("""\n# trainlint: ignore\n""")\n',
            'step(f"""\n# noqa {x}\n""")\n',
        ],
    )
    def test_strings_are_no_comments(self, text: str) -> None:
        assert not covers(text, 1, lines=(1, text.count("\n")))

    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    def test_line_ends(self, line_end: str) -> None:
        text = f"\ufeffa = 1  # trainlint: ignore{line_end}\x0cstep()  # noqa{line_end}c = 3"
        assert [covers(text, line) for line in (1, 2, 3)] == [True, True, False]

    def test_bare_comments_do_not_hide_the_rule_that_judges_them(self) -> None:
        assert not covers("x = 1  # trainlint: ignore\n", 1, "unused-suppression")
        assert covers("x = 1  # trainlint: ignore[TLU001]\n", 1, "unused-suppression")

    def test_text_that_is_not_python_to_the_end(self) -> None:
        assert covers("step()  # noqa\nx = (\n", 1)

    @given(st.text(st.sampled_from("# \n\r\"'\\(x:[]noqatrainlint: ignore")))
    def test_no_text_is_a_problem(self, text: str) -> None:
        covers(text, 1)
        unused(text)


class TestUnused:
    def test_used(self) -> None:
        assert unused("step()  # trainlint: ignore[TLG001]\n", [finding(1)]) == []

    def test_whole_comment(self) -> None:
        assert unused("step()  # trainlint: ignore[TLG001]\n") == [
            "`TLG001` suppressed here, but not reported"
        ]

    def test_part_of_a_comment(self) -> None:
        assert unused("step()  # trainlint: ignore[TLG001, eval-missing]\n", [finding(1)]) == [
            "`eval-missing` suppressed here, but not reported"
        ]

    def test_finding_elsewhere(self) -> None:
        assert unused("# noqa: TLG001\nstep()\nx = 1  # trainlint: ignore\n", [finding(2)]) == [
            "`TLG001` suppressed here, but not reported",
            "nothing is reported here, so there is nothing to suppress",
        ]

    def test_rule_that_did_not_run(self) -> None:
        text = "step()  # trainlint: ignore[slow-loader]  # noqa: TLS001\n"
        assert unused(text) == []
        assert len(unused(text, active=CODES)) == 2

    def test_bare_comment_when_not_all_default_rules_ran(self) -> None:
        active = {"zero-grad-missing", "unused-suppression"}
        assert unused("step()  # trainlint: ignore\n", active=active) == []

    def test_not_selected(self) -> None:
        assert (
            unused("step()  # trainlint: ignore[TLG001]\n", active=DEFAULT - {"unused-suppression"})
            == []
        )

    def test_other_linters(self) -> None:
        text = "import os  # noqa\nimport re  # noqa: F401\n# flake8: noqa\n"
        assert unused(text) == []

    def test_unknown_names(self) -> None:
        text = "step()  # trainlint: ignore[zero-grad-mising, tlg01]  # noqa: TLG999, PLR1\n"
        messages = unused(text)
        assert messages[0] == (
            "`zero-grad-mising` is not a rule, so this suppresses nothing; "
            "did you mean `zero-grad-missing`?"
        )
        assert messages[1].endswith("did you mean `TLG001`?")
        assert messages[2].startswith("`TLG999` is not a rule")
        assert len(messages) == 3

    def test_keeping_a_comment_on_purpose(self) -> None:
        assert unused("step()  # trainlint: ignore[TLG001, unused-suppression]\n") == []
        assert unused("# trainlint: file-ignore[TLU001]\nx = 1  # noqa: TLG001\n") == []

    def test_finding(self) -> None:
        text = "step()  # trainlint: ignore[TLG001] because\n"
        (found,) = Suppressions(text, RULES).unused("a/train.py", [], DEFAULT)
        shown = found.finding
        assert (shown.path, shown.line, shown.column, shown.end_column) == ("a/train.py", 1, 9, 36)
        assert (shown.code, shown.rule, shown.severity) == (
            "TLU001",
            "unused-suppression",
            Severity.WARNING,
        )
        assert shown.fix is not None
        assert shown.fix.applicability is Applicability.SAFE


def test_documentation_examples() -> None:
    example, use_instead = re.findall(r"```python\n(.*?)```", RULES[-1].documentation(), re.DOTALL)
    assert len(unused(example)) == 1
    assert cleaned(example) == use_instead


class TestRemoveUnused:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("x  # trainlint: ignore[TLG001]\ny\n", "x\ny\n"),
            ("x  # trainlint: ignore[TLG001] as it should\r\ny", "x\r\ny"),
            ("x  # trainlint: ignore", "x"),
            ("x  # trainlint: ignore[TLM001]  # type: ignore\n", "x  # type: ignore\n"),
            ("x  # type: ignore  # noqa: TLM001\n", "x  # type: ignore\n"),
            ("x  # noqa: E501,TLM001\n", "x  # noqa: E501\n"),
            ("x  # noqa: E501, TLM001, W2 why\n", "x  # noqa: E501, W2 why\n"),
            ("x  # trainlint: ignore[TLM001,TLS001] why\n", "x  # trainlint: ignore[TLS001] why\n"),
            ("a\n    # trainlint: ignore[TLM001]\n    x\n", "a\n    x\n"),
            ("# trainlint: file-ignore[TLM001]\nx\n", "x\n"),
            ("# trainlint: ignore[TLM001]  # note\nx\n", "# note\nx\n"),
            ("x  # trainlint: ignore[no-such-rule]\n", "x  # trainlint: ignore[no-such-rule]\n"),
            ("x  # trainlint: ignore[TLM001] # noqa: TLM001\n", "x\n"),
            ("\ufeff# trainlint: ignore[TLM001]\nx\n", "\ufeffx\n"),
        ],
    )
    def test_removes_only_that(self, before: str, after: str) -> None:
        assert cleaned(before) == after
        assert cleaned(after) == after

    def test_keeps_what_is_used(self) -> None:
        text = "x  # trainlint: ignore[eval-missing, zero-grad-missing]\n"
        assert cleaned(text, finding(1)) == "x  # trainlint: ignore[zero-grad-missing]\n"


class TestAddIgnores:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("step()\n", "step()  # trainlint: ignore[zero-grad-missing]\n"),
            ("step()", "step()  # trainlint: ignore[zero-grad-missing]"),
            ("step() \r\nx\r\n", "step()  # trainlint: ignore[zero-grad-missing]\r\nx\r\n"),
            ("step()  # why\n", "step()  # why  # trainlint: ignore[zero-grad-missing]\n"),
            (
                "step()  # trainlint: ignore[TLM001] why\n",
                "step()  # trainlint: ignore[TLM001, zero-grad-missing] why\n",
            ),
            (
                "# trainlint: ignore[TLM001]\nstep()\n",
                "# trainlint: ignore[TLM001, zero-grad-missing]\nstep()\n",
            ),
            ("step()  # noqa: TLG001\n", "step()  # noqa: TLG001\n"),
            (
                "step('''\n''', (\n1))\n",
                "step('''\n''', (\n1))  # trainlint: ignore[zero-grad-missing]\n",
            ),
            (
                "if x:\n\tstep(f'''\n{x}''', \\\n'')\n",
                "if x:\n\tstep(f'''\n{x}''', \\\n'')  # trainlint: ignore[zero-grad-missing]\n",
            ),
        ],
    )
    def test_places_the_comment(self, before: str, after: str) -> None:
        statement = ast.parse(before).body[0]
        inner = getattr(statement, "body", [statement])[-1]
        place = finding(inner.lineno, lines=(inner.lineno, inner.end_lineno))
        added = add_ignores(before, [place])
        assert (added.text, added.count, added.unplaced) == (after, 1, ())

    def test_line_above_when_no_line_of_the_statement_takes_a_comment(self) -> None:
        text = "def f():\n    with a, \\\n            b: x = '''\n    '''\n"
        added = add_ignores(text, [finding(2, lines=(2, 3))])
        assert added.text.splitlines()[1:3] == [
            "    # trainlint: ignore[zero-grad-missing]",
            "    with a, \\",
        ]
        assert ast.dump(ast.parse(added.text)) == ast.dump(ast.parse(text))

    def test_no_place_at_all(self) -> None:
        text = "x = '''\n'''; y = \\\n1; z = '''\n'''\n"
        place = finding(2, lines=(2, 2))
        assert add_ignores(text, [place]).unplaced == (place,)

    def test_several_rules_share_a_comment(self) -> None:
        found = [finding(1), finding(1, "eval-missing"), finding(1)]
        added = add_ignores("step()\n", found)
        assert added.text == "step()  # trainlint: ignore[eval-missing, zero-grad-missing]\n"
        assert added.count == 3


STATEMENTS = st.recursive(
    st.sampled_from(
        [
            "step()",
            "x = 1  # why",
            "x = '''a\n# b\n'''",
            "x = f'''a\n{x} # b\n'''",
            "x = 1 + \\\n  2",
            "y = [\n  1,  # one\n\n  # two\n  2,\n]",
            "a = '''\n'''; b = '''\n'''",
            "# trainlint: ignore[eval-missing]\nstep()",
        ]
    ),
    lambda inner: st.builds(
        lambda header, body: header + "\n" + _indented("\n".join(body)),
        st.sampled_from(["if x:", "for x in y:  # loop", "with a, \\\n    b:", "def f(\n  a,\n):"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def _indented(text: str) -> str:
    lines, inside = [], False
    for line in text.split("\n"):
        lines.append(line if inside or not line else "  " + line)
        inside ^= line.count("'''") % 2 == 1
    return "\n".join(lines)


def _statements(text: str) -> list[tuple[int, int]]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found.append((node.lineno, max(node.lineno, last)))
    return found


@settings(max_examples=50)
@given(st.lists(STATEMENTS, min_size=1, max_size=4).map("\n".join), st.data())
def test_added_comments_suppress_and_change_no_code(text: str, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.sampled_from(_statements(text)), min_size=1, unique=True))
    found = [finding(first, lines=(first, last)) for first, last in places]
    added = add_ignores(text, found)
    assert ast.dump(ast.parse(added.text)) == ast.dump(ast.parse(text))
    numbers = dict(zip(_statements(text), _statements(added.text), strict=True))
    suppressions = Suppressions(added.text, RULES)
    for each in found:
        first, last = numbers[each.statement_line, each.statement_end_line]
        expected = each not in added.unplaced
        assert suppressions.covers(finding(first, lines=(first, last))) or not expected
    assert add_ignores(added.text, []).text == added.text


@settings(max_examples=50)
@given(st.lists(STATEMENTS, min_size=1, max_size=4).map("\n".join))
def test_removing_what_was_added_restores_the_text(text: str) -> None:
    found = [finding(first, lines=(first, last)) for first, last in _statements(text)]
    added = add_ignores(text, found).text
    active = {"zero-grad-missing", "unused-suppression"}
    unused_now = Suppressions(added, RULES).unused("train.py", [], active)
    assert remove_unused(added, unused_now) == text
