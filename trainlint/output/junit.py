"""JUnit XML, which nearly every service shows as test results: a suite a file, a case a finding."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from trainlint.finding import Finding
from trainlint.output.context import OutputContext
from trainlint.output.wording import place

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(context: OutputContext) -> str:
    """The report; a run without findings is one passed case, since some services want one."""
    suites = ElementTree.Element(
        "testsuites",
        name="trainlint",
        tests=str(max(1, len(context.findings) + len(context.errors))),
        failures=str(len(context.findings)),
        errors=str(len(context.errors)),
    )
    paths = [finding.path for finding in context.findings]
    paths += [error.path for error in context.errors]
    for path in dict.fromkeys(paths):
        _add_suite(suites, path, context)
    if not len(suites):
        suite = ElementTree.SubElement(
            suites, "testsuite", name="trainlint", tests="1", failures="0", errors="0"
        )
        ElementTree.SubElement(suite, "testcase", name="no findings", classname="trainlint")
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _text(suites) + "\n"


def _text(element: ElementTree.Element) -> str:
    return ElementTree.tostring(element, encoding="unicode")


def _add_suite(suites: ElementTree.Element, path: str, context: OutputContext) -> None:
    findings = [finding for finding in context.findings if finding.path == path]
    errors = [error for error in context.errors if error.path == path]
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=_valid(path),
        tests=str(len(findings) + len(errors)),
        failures=str(len(findings)),
        errors=str(len(errors)),
    )
    for finding in findings:
        _add_finding(suite, finding)
    for error in errors:
        case = ElementTree.SubElement(
            suite, "testcase", name="file-not-checked", classname=_valid(path), file=_valid(path)
        )
        ElementTree.SubElement(case, "error", message=_valid(error.message))


def _add_finding(suite: ElementTree.Element, finding: Finding) -> None:
    path = _valid(finding.path)
    case = ElementTree.SubElement(
        suite,
        "testcase",
        name=f"{finding.code} {finding.rule}",
        classname=path,
        file=path,
        line=str(finding.line),
    )
    failure = ElementTree.SubElement(
        case, "failure", type=finding.severity.value, message=_valid(finding.message)
    )
    failure.text = _valid(f"{place(finding)}: {finding.message}\n{finding.help}")


def _valid(text: str) -> str:
    """The text without the characters that XML cannot hold."""
    return _NOT_XML.sub("�", text)
