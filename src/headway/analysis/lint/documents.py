"""A report as documents for programs: JSON of our own, SARIF 2.1.0 for code scanning, and JUnit's XML for CI.

An audited answer's words are in all of them, whatever they hold: JSON is written in ASCII, and XML without what is not
printable, so neither a terminal nor an encoding can be led astray by them.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, urlsplit

from headway.analysis.lint.answer import Place
from headway.analysis.lint.audit import Graded, Report
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.marks import BEST
from headway.analysis.lint.rules import LEVELS, Rule, rules

__all__ = ["as_json", "as_junit", "as_sarif"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HELP: Final = "https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/"


def as_json(report: Report) -> str:
    """One JSON object: target, score, each refusal with its marks, each finding with why and the fixes."""
    return json.dumps(
        {
            "target": report.target,
            "looked_at": report.looked_at,
            "score": report.score,
            "refusals": [_graded(one) for one in report.graded],
            "findings": [_finding(one) for one in report.findings],
        },
        indent=2,
    )


def _graded(graded: Graded) -> dict[str, object]:
    return {
        **_place(graded.place),
        "status": graded.status,
        "kind": graded.kind,
        "score": graded.score,
        "properties": {
            mark.property: {"points": mark.points, "of": BEST, "evidence": mark.evidence} for mark in graded.marks
        },
    }


def _finding(finding: Finding) -> dict[str, object]:
    rule = rules()[finding.rule]
    return {
        "rule": rule.id,
        "level": rule.level,
        "property": rule.property,
        "message": finding.message,
        **_place(finding.place),
        "what": rule.what,
        "why": rule.why,
        "source": rule.source,
        "fixes": dict(rule.fixes),
    }


def _place(place: Place) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "part": place.what or None}


def as_sarif(report: Report, version: str) -> str:
    """SARIF 2.1.0: one run, a rule for each that was broken, a result for each finding.

    Args:
        report: it.
        version: headway's.
    """
    known = rules()
    used = [rule for name, rule in known.items() if any(one.rule == name for one in report.findings)]
    index = {rule.id: place for place, rule in enumerate(used)}
    run = {
        "tool": {
            "driver": {
                "name": "headway lint",
                "version": version,
                "informationUri": _HELP,
                "rules": [_sarif_rule(rule) for rule in used],
            }
        },
        "columnKind": "utf16CodeUnits",
        "results": [
            {
                "ruleId": one.rule,
                "ruleIndex": index[one.rule],
                "level": known[one.rule].level,
                "message": {"text": _said(one)},
                "locations": [_location(one.place)],
            }
            for one in report.findings
        ],
        "properties": {"score": report.score, "target": report.target},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_rule(rule: Rule) -> dict[str, object]:
    fixes = "\n\n".join(f"{server}:\n\n{text}" for server, text in rule.fixes.items())
    marked = "\n\n".join(f"**{server}**\n\n```text\n{text}\n```" for server, text in rule.fixes.items())
    return {
        "id": rule.id,
        "name": "".join(part.title() for part in rule.id.split("-")),
        "shortDescription": {"text": f"{rule.what[0].upper()}{rule.what[1:]}"},
        "fullDescription": {"text": f"{rule.why} ({rule.source})"},
        "help": {"text": f"{rule.why}\n\n{fixes}", "markdown": f"{rule.why}\n\n{marked}"},
        "defaultConfiguration": {"level": rule.level},
        "properties": {"tags": ["rate-limit", rule.property]},
    }


def _said(finding: Finding) -> str:
    rule = rules()[finding.rule]
    where = f"{finding.place.what}: " if finding.place.what else ""
    return f"{where}{rule.what}: {finding.message}"


def _location(place: Place) -> dict[str, object]:
    physical: dict[str, object] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line is not None:
        physical["region"] = {"startLine": place.line}
    location: dict[str, object] = {"physicalLocation": physical}
    if place.what:
        location["logicalLocations"] = [{"name": place.what, "fullyQualifiedName": place.what}]
    return location


def _uri(file: str) -> str:
    if urlsplit(file).scheme in ("http", "https"):
        return quote(file, safe="/:?#[]@!$&'()*+,;=%~-._")
    return "stdin" if file == "-" else quote(file.replace("\\", "/"))


def as_junit(report: Report, minimum: int | None, fail_on: str = "warning") -> str:
    """JUnit XML: a test case for each rule that could be broken, and one for the score; the broken ones fail.

    What is less serious than ``fail_on`` does not fail: it stands in the case's output.

    Args:
        report: it.
        minimum: the score that was asked for, in percent; None makes no case of it.
        fail_on: the least serious level that fails; "never" fails none.
    """
    suite = ET.Element("testsuite", name="headway lint", errors="0", skipped="0")
    failures = 0
    for case, failed in _cases(report, fail_on):
        suite.append(case)
        failures += failed
    count = len(suite)
    if minimum is not None:
        count += 1
        case = ET.SubElement(suite, "testcase", classname=_xml(report.target), name="score", time="0")
        if report.score is None or report.score < minimum:
            failures += 1
            shown = "nothing could be scored" if report.score is None else f"the score is {report.score} %"
            ET.SubElement(case, "failure", type="score", message=f"{shown}; expected at least {minimum} %")
    suite.set("tests", str(count))
    suite.set("failures", str(failures))
    suites = ET.Element("testsuites", name="headway lint", tests=str(count), failures=str(failures), errors="0")
    suites.append(suite)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}'


def _cases(report: Report, fail_on: str) -> Iterator[tuple[ET.Element, bool]]:
    for name, rule in rules().items():
        found = [one for one in report.findings if one.rule == name]
        case = ET.Element("testcase", classname=_xml(report.target), name=name, time="0")
        said = "\n".join(_xml(f"{one.place}: {one.message}") for one in found)
        failed = bool(found) and fail_on in LEVELS and LEVELS.index(rule.level) <= LEVELS.index(fail_on)
        if failed:
            failure = ET.SubElement(case, "failure", type=rule.level, message=_xml(f"{rule.what}: {found[0].message}"))
            failure.text = f"{said}\n\n{rule.why} ({rule.source})"
        elif found:
            ET.SubElement(case, "system-out").text = said
        yield case, failed


def _xml(text: str) -> str:
    """Text without what XML 1.0 cannot hold and what would steer a terminal: none of it is printable."""
    return "".join(char if char in "\t\n" or char.isprintable() else "·" for char in text)
