"""The fixes are right: they parse, and where the server or framework runs here, its refusals are without a fault with them."""

from __future__ import annotations

import ast
import json
import math
import re
import textwrap
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from adapters.django_project import configured
from headway.analysis.lint.answer import Answer, Place
from headway.analysis.lint.audit import Report, audit
from headway.analysis.lint.openapi import audit_openapi
from headway.analysis.lint.rules import rules
from headway.analysis.yaml import read_yaml
from headway.client import read
from nginx import nginx

TOPICS = {
    "status": "forbidden-for-limit", "reason": "no-machine-reason", "wait": "retry-after-missing", "clock": "clock-skew",
    "cache": "no-store-missing", "cors": "cors-not-exposed", "fields": "limits-not-shown", "reset": "reset-unit-unclear",
    "names": "limits-indistinct", "partition": "partition-key-readable", "openapi": "openapi-429-undeclared",
}  # fmt: skip


def fix(topic: str, server: str) -> str:
    return rules()[TOPICS[topic]].fixes[server]


def audited(response: Any) -> Report:
    """The audit of an httpx, Flask or Django answer."""
    status = response.status_code
    headers = response.headers.multi_items() if isinstance(response, httpx.Response) else list(response.headers.items())
    fields = tuple((str(name), str(value)) for name, value in headers)
    if not any(name.lower() == "date" for name, _ in fields):
        fields = (*fields, ("Date", formatdate(usegmt=True)))
    body = getattr(response, "content", None) or response.data
    heard = read(status, fields, body)
    return audit("fixed", [Answer(status, fields, body, Place("fixed"), heard, None, "fixed")])


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("server", ["flask", "django", "fastapi"])
def test_python_is_python(topic: str, server: str) -> None:
    """Every fix of a Python framework is Python."""
    ast.parse(fix(topic, server))


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("server", ["envoy", "kong"])
def test_configuration_is_yaml(topic: str, server: str) -> None:
    """Every fix of Envoy and Kong is YAML: its parts, which comments head, are mappings."""
    for part in re.split(r"(?m)^# .*\n", fix(topic, server) + "\n"):
        if part.strip():
            assert isinstance(yaml.safe_load(part), dict), part


@pytest.mark.parametrize("topic", TOPICS)
def test_nginx_takes_the_configuration(topic: str, tmp_path: Path) -> None:
    """A real nginx starts with every fix, in the place that its comment names."""
    text = fix(topic, "nginx")
    if topic == "openapi":
        return
    text = text.replace("error_page 429 = @limited;\n}", "error_page 429 = @limited; empty_gif;\n}")
    with nginx(f"server {{ listen PORT;\n{text}\n}}", tmp_path) as port, httpx.Client(trust_env=False) as client:
        assert client.get(f"http://127.0.0.1:{port}/").status_code in (200, 404)


def test_a_real_nginx_with_all_fixes_scores_full_marks(tmp_path: Path) -> None:
    """Nginx as it comes scores badly; with the fixes of its findings it is without one."""
    bare = "limit_req_zone $binary_remote_addr zone=per_ip:1m rate=10r/m;\nserver { listen PORT; location / { limit_req zone=per_ip; empty_gif; } }"
    found = _second_answer(bare, tmp_path)
    assert {one.rule for one in found.findings} >= {"unavailable-unexplained", "html-for-api", "retry-after-missing"}
    assert (found.score or 0) < 40
    reason = fix("reason", "nginx").split("location @limited {")[1]
    wait, cache, fields = (
        fix(topic, "nginx").replace("Retry-After 1", "Retry-After 6") for topic in ("wait", "cache", "fields")
    )
    fixed = (
        f"limit_req_zone $binary_remote_addr zone=per_ip:1m rate=10r/m;\n{fix('status', 'nginx')}\n"
        "server { listen PORT;\nlocation / { limit_req zone=per_ip; error_page 429 = @limited; empty_gif; }\n"
        f"location @limited {{ {wait}\n{cache}\n{fields.replace('t=1', 't=6').replace('w=1', 'w=60')}\n{reason}\n}}"
    )
    folder = tmp_path / "fixed"
    folder.mkdir()
    found = _second_answer(fixed, folder)
    assert [(one.rule, one.message) for one in found.findings] == []
    assert found.score == 100


def _second_answer(http: str, folder: Path) -> Report:
    with nginx(http, folder) as port, httpx.Client(trust_env=False) as client:
        assert client.get(f"http://127.0.0.1:{port}/").status_code == 200
        return audited(client.get(f"http://127.0.0.1:{port}/"))


def applied(server: str, topics: tuple[str, ...]) -> str:
    """The fixes that set fields of a response, as the body of a function."""
    return textwrap.indent("\n".join(fix(topic, server) for topic in topics), "    ")


def test_flask_with_all_fixes_scores_full_marks() -> None:
    """A Flask application that aborts with 429 and has the fixes is without a fault."""
    import flask

    app = flask.Flask("fixed")
    names: dict[str, Any] = {"app": app, "jsonify": flask.jsonify, "math": math, "seconds": 11.2, "remaining": 0}
    exec(fix("reason", "flask"), names)
    exec(fix("fields", "flask").replace("w=1", "w=60"), names)
    exec(f"def finish(response):\n{applied('flask', ('wait', 'cache', 'cors'))}\n    return response", names)
    app.after_request(names["finish"])
    exec(
        f"from flask import abort\n@app.get('/')\ndef items():\n{textwrap.indent(fix('status', 'flask'), '    ')}",
        names,
    )
    found = audited(app.test_client().get("/"))
    assert [one.rule for one in found.findings] == []
    assert found.score == 100


def test_django_with_all_fixes_scores_full_marks() -> None:
    """Django's answer with the fixes is without a fault."""
    configured()
    from django.http import JsonResponse

    names: dict[str, Any] = {"JsonResponse": JsonResponse, "math": math, "seconds": 11.2, "remaining": 0}
    exec(fix("reason", "django"), names)
    names["response"] = names["refused"]()
    for topic in ("wait", "cache", "fields"):
        exec(fix(topic, "django").replace("w=1", "w=60"), names)
    found = audited(names["response"])
    assert [one.rule for one in found.findings] == []
    assert found.score == 100


def test_fastapi_with_all_fixes_scores_full_marks() -> None:
    """A FastAPI application with the fixes is without a fault, and declares its refusals."""
    import fastapi
    from fastapi.middleware.cors import CORSMiddleware
    from fastapi.responses import JSONResponse
    from fastapi.testclient import TestClient

    names: dict[str, Any] = {
        "FastAPI": fastapi.FastAPI, "JSONResponse": JSONResponse, "CORSMiddleware": CORSMiddleware, "math": math,
        "seconds": 11.2, "remaining": 0,
    }  # fmt: skip
    exec(fix("openapi", "fastapi"), names)
    exec(fix("reason", "fastapi"), names)
    exec(f"def finish(response):\n{applied('fastapi', ('wait', 'cache'))}\n    return response", names)
    app = names["app"]
    exec(fix("fields", "fastapi").replace("w=1", "w=60"), names)
    exec(fix("cors", "fastapi"), names)
    app.get("/")(lambda: names["finish"](names["refused"]()))
    response = TestClient(app).get("/", headers={"Origin": "https://app.example"})
    found = audited(response)
    assert "access-control-expose-headers" in response.headers
    assert [one.rule for one in found.findings] == []
    assert found.score == 100
    document = json.dumps(app.openapi())
    assert audit_openapi(read_yaml(document, "openapi.json"), "openapi.json").findings == ()


@pytest.mark.parametrize("server", ["nginx", "envoy", "kong"])
def test_what_is_declared_is_enough(server: str) -> None:
    """The responses that a document is told to declare leave nothing to find."""
    operation = yaml.safe_load(fix("openapi", server))
    document = {"openapi": "3.1.0", "paths": {"/": {"get": operation}}}
    found = audit_openapi(read_yaml(json.dumps(document), "x"), "x")
    assert (found.findings, found.score) == ((), 100)


def test_flask_and_django_declarations_are_enough() -> None:
    """So do the Python objects, and the hook that writes one into every operation."""
    for server in ("flask", "django"):
        names: dict[str, Any] = {}
        exec(fix("openapi", server), names)
        operation: dict[str, Any] = {"responses": {}}
        document = {"openapi": "3.0.3", "paths": {"/": {"get": operation}}}
        if server == "django":
            names["declare_refusals"](document, None, None, True)
        else:
            operation["responses"]["429"] = names["REFUSED"]
        assert audit_openapi(read_yaml(json.dumps(document), "x"), "x").findings == ()
