"""OpenAPI documents: declared refusals score, missing ones are found, per operation and with its line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.analysis.lint.audit import Report
from headway.analysis.lint.openapi import audit_openapi
from headway.analysis.yaml import read_yaml
from headway.errors import ConfigError

GOOD: dict[str, Any] = {
    "description": "Too many requests",
    "headers": {
        "Retry-After": {"schema": {"type": "integer"}},
        "RateLimit": {"schema": {"type": "string"}},
    },
    "content": {"application/problem+json": {"schema": {"type": "object"}}},
}


def document(responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "paths": {"/items": {"get": {"responses": {"200": {"description": "ok"}, **responses}}}},
        **more,
    }


def audited(value: Any) -> Report:
    return audit_openapi(read_yaml(json.dumps(value, indent=1), "api.json"), "api.json")


def found(value: Any) -> set[str]:
    return {one.rule for one in audited(value).findings}


def test_a_document_that_declares_all_scores_full_marks() -> None:
    """A 429 with Retry-After, limit fields and a problem document is complete, also by reference."""
    for value in (
        document({"429": GOOD}),
        document({"429": {"$ref": "#/components/responses/Refused"}}, components={"responses": {"Refused": GOOD}}),
        document(
            {"429": {**GOOD, "headers": {"Retry-After": {"$ref": "#/components/headers/R"}, "X-RateLimit-Limit": {}}}},
            components={"headers": {"R": {"schema": {"type": "integer"}}}},
        ),
    ):
        report = audited(value)
        assert (report.findings, report.score) == ((), 100)


@pytest.mark.parametrize(
    ("responses", "rules"),
    [
        ({}, {"openapi-429-undeclared"}),
        ({"default": {"description": "error"}}, {"openapi-429-undeclared"}),
        ({"4XX": GOOD}, {"openapi-429-undeclared"}),
        (
            {"429": {"description": "x"}},
            {"openapi-problem-undeclared", "openapi-retry-after-undeclared", "openapi-limits-undeclared"},
        ),
        ({"429": {**GOOD, "content": {"application/json": {}}}}, {"openapi-problem-undeclared"}),
        (
            {"429": {**GOOD, "headers": {**GOOD["headers"], "Retry-After": {"schema": {"type": "number"}}}}},
            {"openapi-retry-after-type"},
        ),
        ({"429": GOOD, "403": {"description": "Rate limit exceeded"}}, {"openapi-limit-status"}),
        ({"503": {"description": "Too many requests"}}, {"openapi-429-undeclared", "openapi-limit-status"}),
        ({"429": {"$ref": "#/components/responses/Gone"}}, set()),
    ],
)
def test_what_is_missing_is_found(responses: dict[str, Any], rules: set[str]) -> None:
    """Each gap is a finding of its own rule; a reference that leads nowhere declares nothing and costs the score."""
    assert found(document(responses)) == rules
    assert (audited(document(responses)).score or 0) < 100 or rules == {"openapi-limit-status"}


def test_a_finding_stands_at_its_operation() -> None:
    """Each operation without a 429 is found with its method, path and line; the score is the share that has one."""
    text = "openapi: 3.0.3\npaths:\n  /a:\n    get:\n      responses:\n        '200': {description: ok}\n    post:\n      responses: {}\n"
    report = audit_openapi(read_yaml(text, "api.yaml"), "api.yaml")
    assert [(one.place.line, one.place.what) for one in report.findings] == [(4, "GET /a"), (7, "POST /a")]
    assert report.score == 0


def test_circles_and_strange_shapes_are_no_error() -> None:
    """References in a circle, and things of the wrong type, are as if not declared."""
    loop = {"$ref": "#/components/responses/A"}
    assert found(document({"429": loop}, components={"responses": {"A": loop}})) == set()
    for paths in (None, [], "x", {"/a": None}, {"/a": {"get": []}}, {"/a": {"get": {"responses": []}}}):
        audited({"openapi": "3.0.0", "paths": paths})
    audited(document({"429": {"headers": [], "content": [], "description": None}}))


@pytest.mark.parametrize("value", [{"swagger": "2.0"}, {"openapi": 3}, {"openapi": "2.0"}, [], "x"])
def test_other_versions_are_refused(value: Any) -> None:
    """What is no document of version 3 is one clear error."""
    with pytest.raises(ConfigError, match="version 3"):
        audited(value)
