"""The budget of tokens, used over HTTP at the real application on a SQLite store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from example_site import client, serving
from examples.llm_budget.app import create_app
from examples.llm_budget.budget import budget
from examples.llm_budget.model import generate

from headway import Limiter
from headway.stores.sqlite import SqliteStore
from headway.stores.threaded import ThreadedStore
from headway.testing import ManualClock


@dataclass
class Site:
    """The running application; its model fails, or holds, where a prompt asks for it."""

    clock: ManualClock
    store: SqliteStore
    address: str = ""
    http: httpx.Client = field(default_factory=httpx.Client)
    go_on: threading.Event = field(default_factory=threading.Event)

    def chat(self, prompt: str = "a b", max_tokens: int = 100, key: str = "k", **more: Any) -> httpx.Response:
        body = {"prompt": prompt, "max_tokens": max_tokens, **more}
        return self.http.post("/chat", json=body, headers={"x-api-key": key})

    def left(self, key: str = "k") -> dict[str, int]:
        """What is left of each limit now."""
        limits = budget("memory://").limits
        found = Limiter(*limits, store=self.store, namespace="llm").peek(key=key, cost=0).outcomes
        return {name: outcome.remaining for name, outcome in found.items()}

    async def model(self, prompt: str, max_tokens: int) -> AsyncIterator[str]:
        words = prompt.split()
        if words[0] == "fail":
            raise RuntimeError("the model is down")
        async for token in generate(prompt, max_tokens):
            if token == "hold":
                await asyncio.to_thread(self.go_on.wait, 5)
            if token == "break":
                raise RuntimeError("the model broke off")
            yield token


@pytest.fixture
def site(tmp_path: Path, clock: ManualClock) -> Iterator[Site]:
    store = SqliteStore(tmp_path / "limits.db", clock=clock)
    made = Site(clock, store)
    with serving(create_app(ThreadedStore(store), made.model)) as made.address, client(made.address) as made.http:
        yield made
    store.close()


def test_an_answer_costs_what_it_used(site: Site) -> None:
    """The estimate is reserved, and what the answer did not use is given back: exactly the actual tokens are charged."""
    answer = site.chat("one two three", 500)
    assert answer.json() == {"answer": "one two three", "usage": {"reserved": 503, "used": 6}}
    assert '"tokens";r=497' in answer.headers["ratelimit"]  # as it stood while the estimate was reserved
    assert site.left() == {"tokens": 994, "requests": 19, "answers": 2, "all-tokens": 19_994}


def test_estimates_that_do_not_fit_are_refused_with_the_wait(site: Site) -> None:
    """When the budget is nearly spent an estimate that does not fit is refused, and after the wait it fits exactly."""
    for _ in range(9):
        site.chat("w " * 50, 50)
    assert site.left()["tokens"] == 100
    refused = site.chat("w", 399)
    assert refused.status_code == 429
    assert (refused.json()["limit"], refused.json()["retry_after_ms"]) == ("tokens", 18_000)
    assert refused.headers["retry-after"] == "18"
    assert site.left()["requests"] == 11  # a refused request is charged to no limit
    site.clock.advance(18)
    assert site.chat("w", 399).status_code == 200


def test_an_estimate_above_the_budget_can_never_fit(site: Site) -> None:
    """More tokens than a minute has are refused for good, whatever is left, and without a time to come back."""
    refused = site.chat("w", 1000)
    assert refused.status_code == 422
    assert refused.json()["never"] is True
    assert "retry-after" not in refused.headers


def test_a_model_that_fails_costs_nothing(site: Site) -> None:
    """When the model fails before its first token, everything is given back: tokens, the request, the place."""
    with client(site.address) as http:
        body = {"prompt": "fail", "max_tokens": 900}
        assert http.post("/chat", json=body, headers={"x-api-key": "k"}).status_code == 500
    assert site.left() == {"tokens": 1000, "requests": 20, "answers": 2, "all-tokens": 20_000}


def test_a_model_that_breaks_off_costs_what_it_gave(site: Site) -> None:
    """When the model fails in the middle, the prompt and the tokens until then are charged."""
    with client(site.address) as http:
        body = {"prompt": "one two break three", "max_tokens": 900}
        assert http.post("/chat", json=body, headers={"x-api-key": "k"}).status_code == 500
    assert site.left()["tokens"] == 1000 - 4 - 2


def test_a_stream_is_settled_when_it_ends(site: Site) -> None:
    """While tokens are streamed the estimate is reserved; at the end only the actual ones are charged."""
    body = {"prompt": "one two hold three", "max_tokens": 500, "stream": True}
    with site.http.stream("POST", "/chat", json=body, headers={"x-api-key": "k"}) as stream:
        lines = stream.iter_lines()
        assert [next(lines), next(lines)] == ["one", "two"]
        assert site.left()["tokens"] == 1000 - 504
        assert site.left()["answers"] == 1
        site.go_on.set()
        assert list(lines) == ["hold", "three"]
    _until(lambda: site.left()["answers"] == 2)
    assert site.left()["tokens"] == 1000 - 8


def test_a_client_that_goes_away_pays_for_what_was_generated(site: Site) -> None:
    """When the client closes a stream, the prompt and the tokens until then are charged, and its place is free again."""
    body = {"prompt": "one two hold " + "more " * 90, "max_tokens": 500, "stream": True}
    with site.http.stream("POST", "/chat", json=body, headers={"x-api-key": "k"}) as stream:
        lines = stream.iter_lines()
        assert [next(lines), next(lines)] == ["one", "two"]
    site.go_on.set()
    _until(lambda: site.left()["answers"] == 2)
    left = site.left()["tokens"]
    assert 1000 - 93 - 93 <= left <= 1000 - 93 - 2
    assert site.left()["requests"] == 19


def test_two_answers_at_once(site: Site) -> None:
    """A third answer at the same time is refused; when one has ended there is a place again."""
    with ThreadPoolExecutor(2) as pool:
        held = [pool.submit(site.chat, "hold") for _ in range(2)]
        _until(lambda: site.left()["answers"] == 0)
        assert site.chat().json()["limit"] == "answers"
        site.go_on.set()
        assert [one.result(10).status_code for one in held] == [200, 200]
    assert site.chat().status_code == 200


def test_keys_have_budgets_of_their_own(site: Site) -> None:
    """What one key spends is not another's; all keys together have a budget too."""
    site.chat("w " * 400, 500, key="a")
    assert site.left("a")["tokens"] == 200
    assert site.left("b")["tokens"] == 1000
    assert site.left("b")["all-tokens"] == 19_200


def test_what_cannot_be_right_is_told(site: Site) -> None:
    """A request without a key, without a prompt, or with a wrong number is refused with the reason, and costs nothing."""
    assert site.http.post("/chat", json={"prompt": "w"}).status_code == 401
    for wrong in ({"prompt": ""}, {"prompt": "w", "max_tokens": 0}, {"prompt": "w", "max_tokens": True}, ["w"]):
        answer = site.http.post("/chat", json=wrong, headers={"x-api-key": "k"})
        assert (answer.status_code, "expected" in answer.json()["detail"]) == (400, True)
    assert site.http.post("/chat", content=b"{", headers={"x-api-key": "k"}).status_code == 400
    assert site.left()["requests"] == 20


def _until(true: Any) -> None:
    """Ask until it is true, for at most ten seconds."""
    pause = threading.Event()
    for _ in range(1000):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("not true within ten seconds")
