"""WSGI: what PEP 3333 asks of a middleware, with applications of every shape."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from adapters.http_clients import Answer, call_wsgi
from headway import AsyncLimiter, ConfigError, Limit, Limiter, MemoryStore, RateLimited
from headway.adapters.ledger import ResponseFacts
from headway.adapters.wsgi import RateLimitMiddleware
from headway.testing.clock import ManualClock

TEXT = [("Content-Type", "text/plain")]


def ask(quota: str, clock: ManualClock, **more: Any) -> Limiter:
    return Limiter(Limit("all", quota, by="address", **more), store=MemoryStore(clock=clock))


def get(app: Any, path: str = "/", headers: Any = None, method: str = "GET") -> Answer:
    return call_wsgi(app, method, path, headers or {}, "203.0.113.7")


class Body:
    """A body that counts how often it is closed."""

    def __init__(self, parts: list[bytes]) -> None:
        self.parts = iter(parts)
        self.closed = 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> bytes:
        return next(self.parts)

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("settles", [False, True])
def test_the_applications_body_is_closed_once(clock: ManualClock, settles: bool) -> None:
    """``close`` of the inner iterable is called exactly once, read to its end or not."""
    bodies: list[Body] = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", TEXT)
        bodies.append(Body([b"a", b"b"]))
        return bodies[-1]

    told: list[ResponseFacts] = []
    options: Any = {"charge_if": lambda response: told.append(response) or True} if settles else {}
    within = RateLimitMiddleware(app, ask("9 per minute", clock), **options)
    assert get(within).parts == [b"a", b"b"]
    left = within({"REQUEST_METHOD": "GET", "PATH_INFO": "/", "REMOTE_ADDR": "203.0.113.7"}, lambda *_: None)
    assert next(iter(left)) == b"a"
    left.close()  # type: ignore[attr-defined]  # the client left
    assert [body.closed for body in bodies] == [1, 1]
    assert [(facts.status, facts.size) for facts in told] == ([(200, 2), (200, 1)] if settles else [])


def test_nothing_is_put_around_a_body_that_needs_nothing(clock: ManualClock) -> None:
    """The application's own iterable is handed on, so that a server's file wrapper stays one."""
    body = Body([b"a"])

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", TEXT)
        return body

    within = RateLimitMiddleware(app, ask("9 per minute", clock))
    assert within({"PATH_INFO": "/", "REMOTE_ADDR": "203.0.113.7"}, lambda *_: None) is body


def test_an_application_that_is_a_generator(clock: ManualClock) -> None:
    """One that starts its answer when it is first read gets the fields, and is refused before it runs."""

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", TEXT)
        yield b"a"
        yield b"b"

    within = RateLimitMiddleware(app, ask("1 per minute", clock))
    answer = get(within)
    assert (answer.parts, answer.remaining) == ([b"a", b"b"], [0])
    assert get(within).status == 429


@pytest.mark.parametrize("lazy", [False, True])
def test_a_refusal_that_the_application_raises_is_answered(clock: ManualClock, lazy: bool) -> None:
    """``RateLimited`` out of an application, at its call or when it is first read, becomes the whole answer."""
    codes = ask("1 per hour", clock)

    def spent() -> None:
        with codes.admitted(address="x"):
            pass

    def eager(environ: Any, start_response: Any) -> Any:
        spent()
        start_response("200 OK", TEXT)
        return [b"sent"]

    def generator(environ: Any, start_response: Any) -> Any:
        spent()
        start_response("200 OK", TEXT)
        yield b"sent"

    within = RateLimitMiddleware(generator if lazy else eager)
    assert get(within).body == b"sent"
    refused = get(within)
    assert (refused.status, refused.headers["retry-after"]) == (429, "3600")
    assert refused.problem["limit"] == "all"


def test_exc_info_is_handed_on(clock: ManualClock) -> None:
    """An application may begin again with ``exc_info``; the fields are on the answer that counts."""
    seen: list[Any] = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", TEXT)
        try:
            raise RuntimeError("late")
        except RuntimeError:
            start_response("500 Internal Server Error", TEXT, sys.exc_info())
        return [b"sorry"]

    def start_response(status: str, headers: Any, *exc_info: Any) -> None:
        seen.append((status, dict(headers).get("RateLimit"), len(exc_info)))

    within = RateLimitMiddleware(app, ask("9 per minute", clock))
    assert list(within({"PATH_INFO": "/", "REMOTE_ADDR": "203.0.113.7"}, start_response)) == [b"sorry"]
    assert seen == [("200 OK", '"all";r=8;t=7', 0), ("500 Internal Server Error", '"all";r=8;t=7', 1)]


def test_an_exception_before_the_answer_gives_back_what_was_held(clock: ManualClock) -> None:
    """An application that raises is no reason to hold a lease."""

    def app(environ: Any, start_response: Any) -> Any:
        raise RuntimeError("this page fails")

    within = RateLimitMiddleware(app, ask("1 at once for 1 hour", clock))
    for _ in range(3):
        assert isinstance(get(within).error, RuntimeError)


def test_a_refusal_too_late_to_be_answered_stays_an_exception(clock: ManualClock) -> None:
    """Once an answer has begun, a ``RateLimited`` can only be let out."""
    codes = ask("1 per hour", clock)
    codes.hit(address="x")

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", TEXT)
        yield b"begun"
        with codes.admitted(address="x"):
            yield b"never"

    assert isinstance(get(RateLimitMiddleware(app)).error, RateLimited)


def test_what_cannot_be_right_is_said_at_once(clock: ManualClock) -> None:
    """An AsyncLimiter, a limit by route around an application without a table, options without a limiter."""

    def app(environ: Any, start_response: Any) -> Any:
        raise AssertionError

    with pytest.raises(TypeError, match="use Limiter"):
        RateLimitMiddleware(app, AsyncLimiter(Limit("all", "1 per minute")))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="tells no routes"):
        RateLimitMiddleware(app, Limiter(Limit("all", "1 per minute", by="route")))
    with pytest.raises(TypeError, match="no limiter to apply them to: cost"):
        RateLimitMiddleware(app, cost=2)
