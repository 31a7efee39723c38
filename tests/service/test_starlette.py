"""The service as an application that any ASGI server can run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headway.policy.toml import read_policy_text
from headway.service.api import Api
from headway.service.starlette import application
from headway.stores.memory import MemoryStore

LIMITS = '[[policies.p.limits]]\nname = "l"\nquota = "1 per day"\n'


class WatchedStore(MemoryStore):
    """A memory store that counts how often it is closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1
        super().close()


def test_the_application_closes_its_store_at_the_end(tmp_path: Path) -> None:
    """Once, when the lifespan ends, and not before."""
    store = WatchedStore()
    api = Api(read_policy_text(LIMITS, file="f", folder=tmp_path).policies(), store)
    with TestClient(application(api)) as client:
        statuses = [client.post("/v1/check", json={"policy": "p"}).status_code for _ in range(2)]
        assert store.closed == 0
    assert statuses == [200, 429]
    assert store.closed == 1


class BrokenStore:
    """A store that fails in a way no store may."""

    def advance(self, charges: object, *, commit: bool = True) -> object:
        raise AssertionError("what nobody outside should read")

    def close(self) -> None:
        pass


def test_a_fault_of_the_service_is_a_problem_document(tmp_path: Path) -> None:
    """An error nobody foresaw is a 500 that says no more than its kind."""
    api = Api(read_policy_text(LIMITS, file="f", folder=tmp_path).policies(), BrokenStore())  # type: ignore[arg-type]
    with TestClient(application(api), raise_server_exceptions=False) as client:
        answer = client.post("/v1/check", json={"policy": "p"})
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["detail"] == "the service failed (AssertionError); its log says more"


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never ends its body gets a 408 that closes the connection, and is charged nothing."""
    monkeypatch.setattr("headway.service.starlette.BODY_WITHIN_S", 0.01)
    api = Api(read_policy_text(LIMITS, file="f", folder=tmp_path).policies(), MemoryStore())
    pieces = [{"type": "http.request", "body": b'{"policy"', "more_body": True}]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        if not pieces:
            await asyncio.Event().wait()
        return pieces.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/check", "headers": [], "query_string": b""}
    asyncio.run(application(api)(scope, receive, send))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["detail"] == "the body was not complete after 0.01 s"
    with TestClient(application(api)) as client:
        assert client.post("/v1/check", json={"policy": "p"}).status_code == 200
