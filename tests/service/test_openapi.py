"""The OpenAPI document against the real service: every path, every example, every status that can be provoked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Service, serving

from headway.policy.builtin import BUILTIN_TEXT
from headway.service.openapi import openapi_document

DOCUMENT = openapi_document()
POLICIES = BUILTIN_TEXT.replace("sqlite:///limits.db", "memory://") + (
    '[[policies.jobs.limits]]\nname = "at-once"\nquota = "9 at once for 60s"\nalgorithm = "concurrency"\n'
    '[[policies.banned.limits]]\nname = "ban"\nquota = "0/day"\n'
    '[[policies.tried.limits]]\nname = "trial"\nquota = "1/day"\nby = "id"\nshadow = true\n'
    '[[policies.tried.limits]]\nname = "all"\nquota = "1/day"\nshadow = true\n'
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("openapi"), POLICIES) as started:
        yield started


def test_it_is_served_as_it_is(service: Service) -> None:
    """/openapi.json is this document, of version 3.1, with every operation named and answered."""
    served = service.client.get("/openapi.json").json()
    assert served == DOCUMENT
    assert served["openapi"].startswith("3.1.")
    operations = [operation for path in served["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) == 9
    for operation in operations:
        assert operation["summary"]
        assert all(response["description"] for response in operation["responses"].values())


def test_every_reference_leads_somewhere() -> None:
    """No part of the document names a schema or a header that is not there, and every schema is used."""
    references = set(_references(DOCUMENT))
    for kind, parts in DOCUMENT["components"].items():
        assert {f"#/components/{kind}/{name}" for name in parts} <= references
    for reference in references:
        assert _resolved({"$ref": reference})


def test_every_get_answers_as_described(service: Service) -> None:
    """Each path that takes GET answers 200 with what its schema says."""
    paths = [path for path, operations in DOCUMENT["paths"].items() if "get" in operations]
    assert len(paths) == 5
    for path in paths:
        answer = service.client.get(path)
        assert answer.status_code == 200
        _check_answer(DOCUMENT["paths"][path]["get"], answer)


@pytest.mark.parametrize("path", ["/v1/check", "/v1/peek"])
@pytest.mark.parametrize(
    "name", DOCUMENT["paths"]["/v1/check"]["post"]["requestBody"]["content"]["application/json"]["examples"]
)
def test_every_example_is_answered_as_described(service: Service, path: str, name: str) -> None:
    """The examples are requests that the request's schema takes and the service answers as described, twice."""
    operation = DOCUMENT["paths"][path]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    example = content["examples"][name]["value"]
    _check(example, content["schema"], name)
    for _ in range(2):
        _check_answer(operation, service.client.post(path, json=example))


def test_every_refusal_is_described(service: Service) -> None:
    """Each status that a request can bring about has the body and the fields that the document promises."""
    operation = DOCUMENT["paths"]["/v1/check"]["post"]
    ask = {"policy": "one-time-codes", "attributes": {"phone": "refused", "ip": "a"}}
    seen = set()
    for body in (
        b"x", b'{"policy": "x"}', b'{"policy": "one-time-codes"}', b'{"policy": "banned"}', b"[" + b"1," * 1000 + b"1]",
    ):  # fmt: skip
        answer = service.client.post("/v1/check", content=body)
        seen.add(str(answer.status_code))
        _check_answer(operation, answer)
    for cost in (1, 1, 2):
        answer = service.client.post("/v1/check", json={**ask, "cost": cost})
        seen.add(str(answer.status_code))
        _check_answer(operation, answer)
    encoded = service.client.post("/v1/check", content=b"x", headers={"Content-Encoding": "gzip"})
    seen.add(str(encoded.status_code))
    _check_answer(operation, encoded)
    assert seen | {"408", "503"} == set(operation["responses"])


def test_giving_back_is_answered_as_described(service: Service) -> None:
    """A decision with a lease, and every answer to /v1/release and /v1/renew, one by one and as a batch."""
    decision = service.client.post("/v1/check", json={"policy": "jobs"})
    _check_answer(DOCUMENT["paths"]["/v1/check"]["post"], decision)
    lease = decision.json()["lease"]
    for path in ("/v1/renew", "/v1/release"):
        operation = DOCUMENT["paths"][path]["post"]
        _check({"lease": lease}, operation["requestBody"]["content"]["application/json"]["schema"], path)
        seen = set()
        for body in ({"lease": lease}, [{"lease": lease}, {"lease": ""}], {"lease": 1}, {"lease": lease, "x": 1}, "x"):
            answer = service.client.post(path, json=body)
            _check_answer(operation, answer)
            seen.add(answer.status_code)
        for content in (b"x", b"[" + b"1," * 1000 + b"1]"):
            answer = service.client.post(path, content=content)
            _check_answer(operation, answer)
            seen.add(answer.status_code)
        assert seen == {200, 400, 413, 422}


def test_the_check_of_this_test_can_fail() -> None:
    """A member too many, too few or of the wrong type is noticed."""
    status: dict[str, Any] = {"$ref": "#/components/schemas/Status"}
    _check({"status": "ok"}, status, "")
    for wrong in ({}, {"status": "good"}, {"status": "ok", "x": 1}, [], None):
        with pytest.raises(AssertionError):
            _check(wrong, status, "")
    with pytest.raises(AssertionError):
        _check(True, {"type": "integer"}, "")


def test_outages_are_described(tmp_path: Path) -> None:
    """503, of a decision and of readiness, is what the document says."""
    text = POLICIES.replace("memory://", "sqlite:///state.db")
    with serving(tmp_path, text) as service:
        for path in tmp_path.glob("state.db*"):
            path.unlink()
        (tmp_path / "state.db").mkdir()
        body = {"policy": "one-time-codes", "attributes": {"phone": "1", "ip": "a"}}
        service.client.post("/v1/check", json=body)
        for path, method, ask in (("/v1/check", "post", body), ("/readyz", "get", None)):
            answer = service.client.request(method, path, json=ask)
            assert answer.status_code == 503
            _check_answer(DOCUMENT["paths"][path][method], answer)


def _check_answer(operation: dict[str, Any], answer: Any) -> None:
    """Status, media type, fields and body are among what the operation describes."""
    described = operation["responses"][str(answer.status_code)]
    media_type = answer.headers["content-type"].split(";")[0]
    _check(answer.json(), described["content"][media_type]["schema"], str(answer.url))
    if isinstance(answer.json(), list) or "urn:headway:invalid" in answer.text or "urn:headway:missing" in answer.text:
        return
    for name, header in described.get("headers", {}).items():
        if name == "RateLimit" and answer.status_code in (403, 503):
            continue
        _check(answer.headers[name], _resolved(header)["schema"], name)


def _check(value: Any, schema: dict[str, Any], place: str) -> None:
    """As much of JSON Schema 2020-12 as the document uses."""
    schema = _resolved(schema)
    known = {
        "type", "properties", "required", "additionalProperties", "items", "maxItems", "oneOf", "const", "enum",
        "minimum", "maximum", "pattern", "format", "description", "default", "examples",
    }  # fmt: skip
    assert schema.keys() <= known, f"{place}: this test does not know {schema.keys() - known}"
    if "oneOf" in schema:
        fitting = [part for part in schema["oneOf"] if _fits(value, part)]
        assert len(fitting) == 1, f"{place}: {value!r} fits {len(fitting)} of {len(schema['oneOf'])} schemas"
    if "const" in schema:
        assert value == schema["const"], place
    if "enum" in schema:
        assert value in schema["enum"], place
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert _type(value) in types, f"{place}: {value!r} is no {types}"
    if isinstance(value, int):
        assert schema.get("minimum", value) <= value <= schema.get("maximum", value), place
    if isinstance(value, list):
        assert len(value) <= schema.get("maxItems", len(value)), place
        for index, item in enumerate(value):
            _check(item, schema.get("items", {}), f"{place}[{index}]")
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= value.keys(), f"{place}: lacks {schema['required']}"
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            assert inner is not False, f"{place}: {name} is not described"
            _check(item, inner, f"{place}.{name}")


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    try:
        _check(value, schema, "")
    except AssertionError:
        return False
    return True


def _type(value: Any) -> str:
    kinds = {
        bool: "boolean",
        int: "integer",
        str: "string",
        float: "number",
        dict: "object",
        list: "array",
        type(None): "null",
    }
    return kinds[type(value)]


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        found: Any = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for inner in part.values():
            yield from _references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _references(inner)
