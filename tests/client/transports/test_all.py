"""What every transport does alike, against a real server that refuses in every dialect; time is a manual clock's."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC

import pytest
from tests.client.corpus import Case, cases
from tests.client.transports.clients import CLIENTS, Ask
from tests.client.transports.server import Answer, Scripted, as_answer

from headway import MemoryStore
from headway.client import read
from headway.client.abort import Abort
from headway.client.pace import Pace
from headway.client.retry import Retry
from headway.errors import DeadlineTooSoon, RateLimitedError
from headway.testing import ManualClock

OK = Answer(200, (("Content-Type", "text/plain"),), b"done")
REFUSED = Answer(429, (("Retry-After", "7"),), b"slow down")
SENDABLE = [case for case in cases("rejections") if case.status >= 400]


@pytest.fixture(params=CLIENTS)
def ask(request: pytest.FixtureRequest) -> Ask:
    """Each client library in turn."""
    return CLIENTS[request.param]


def waited(clock: ManualClock, since: int) -> float:
    """Seconds that the clock was moved on."""
    return (clock.now - since) / 1e9


def test_a_refusal_is_waited_for_as_told(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Two refusals of seven seconds are waited for, at least as long and hardly longer; then the answer comes."""
    url, start = server.plan("/", REFUSED, REFUSED, OK), clock.now
    assert ask("GET", url, timer=clock) == (200, b"done")
    assert 14 <= waited(clock, start) <= 16
    assert [seen.method for seen in server.seen] == ["GET"] * 3


def test_connections_are_reused(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A refusal's body is read, so waiting holds no connection and the next attempt takes the same one."""
    ask("GET", server.plan("/", REFUSED, REFUSED, OK), times=3, timer=clock)
    assert len(server.seen) == 5
    assert len({seen.peer for seen in server.seen}) == 1


def test_the_final_failure_tells_everything(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Given up, there are the sentence, the whole history, the last response and its body, and when to come back."""
    url = server.plan("/", REFUSED, Answer(429, (("Retry-After", "3600"),), b'{"error": "hourly limit"}'))
    with pytest.raises(RateLimitedError, match=r"Try again in 60 minutes\.") as caught:
        ask("POST", url, body=b"x", timer=clock)
    error = caught.value
    assert [(one.number, one.status, one.wait is None) for one in error.history] == [(1, 429, False), (2, 429, True)]
    assert error.body == b'{"error": "hourly limit"}'
    assert error.retry_after == 3600
    assert error.retry_at is not None
    assert error.retry_at.astimezone(UTC).timestamp() == pytest.approx(clock.now / 1e9 + 3600, abs=1e-3)
    assert getattr(error.response, "status_code", getattr(error.response, "status", None)) == 429
    assert "deadline" in str(error)


@pytest.mark.parametrize("client", ["httpx", "requests", "aiohttp", "urllib3"])
def test_every_dialect_is_waited_for_or_reported(client: str, server: Scripted) -> None:
    """Each recorded refusal is waited for in full, reported with its kind, or left alone, over a real connection."""
    wrong = [case.id for case in SENDABLE if not _right(client, case, server)]
    assert not wrong


def _right(client: str, case: Case, server: Scripted) -> bool:
    clock = ManualClock(int(case.received_at.timestamp()))
    answer = as_answer(case)
    url, start = server.plan(f"/{case.id}", answer, OK), clock.now
    told = read(case.status, answer.headers, case.body.encode(), received_at=case.received_at)
    assert told is not None
    server.seen.clear()
    try:
        got = CLIENTS[client]("GET", url, timer=clock, retry=Retry(deadline=90 * 86_400))
    except RateLimitedError as error:
        unsaid = told.kind == "quota_exhausted" and told.retry_after is None
        as_read = (error.rejection.kind, error.body) == (told.kind, case.body.encode())
        return as_read and len(server.seen) == 1 and (unsaid or told.no_retry)
    if told.waiting_helps:
        return got[0] == 200 and waited(clock, start) >= max(told.retry_after or 0, 1e-9)
    return got == (case.status, case.body.encode()) and len(server.seen) == 1


@pytest.mark.parametrize("status", [200, 301, 404, 500])
def test_what_is_no_refusal_goes_through_untouched(ask: Ask, server: Scripted, clock: ManualClock, status: int) -> None:
    """Other answers come back as they are, at once and once."""
    headers = (("Location", server.plan("/there", OK)),) if status == 301 else ()
    start = clock.now
    got = ask("GET", server.plan("/", Answer(status, headers, b"body")), timer=clock)
    assert got == ((200, b"done") if status == 301 else (status, b"body"))
    assert clock.now == start


def test_each_hop_of_a_redirect_is_waited_for(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A refusal before and after a redirect is waited for; the redirect itself is followed by the client."""
    there = server.plan("/there", REFUSED, OK)
    url, start = server.plan("/", REFUSED, Answer(302, (("Location", there),))), clock.now
    assert ask("GET", url, timer=clock) == (200, b"done")
    assert 14 <= waited(clock, start) <= 16


def test_bodies_are_sent_again_in_full(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Bytes arrive whole with every attempt."""
    ask("POST", server.plan("/", REFUSED, REFUSED, OK), body=b"0123456789" * 1000, timer=clock)
    assert [seen.body for seen in server.seen] == [b"0123456789" * 1000] * 3


@pytest.mark.parametrize(
    ("client", "start"), [("httpx", 0), ("httpx2", 0), ("requests", 4), ("aiohttp", 4), ("urllib3", 4)]
)
def test_files_are_rewound_to_where_they_were(client: str, start: int, server: Scripted, clock: ManualClock) -> None:
    """A file that had been read up to some byte is sent from there, each time (httpx itself sends only whole files)."""
    file = io.BytesIO(b"skip0123456789")
    file.seek(start)
    CLIENTS[client]("POST", server.plan("/", REFUSED, OK), body=file, timer=clock)
    assert [seen.body for seen in server.seen] == [b"skip0123456789"[start:]] * 2


def test_a_body_that_goes_one_way_is_sent_once(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A generator cannot be sent again, so its refusal is final, with the reason said; nothing is sent half."""

    def parts() -> Iterator[bytes]:
        yield b"one"
        yield b"two"

    with pytest.raises(RateLimitedError, match="cannot be sent a second time"):
        ask("PUT", server.plan("/", REFUSED, OK), body=parts(), timer=clock)
    assert [seen.body for seen in server.seen] == [b"onetwo"]


def test_unavailability_is_only_retried_where_it_is_safe(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A 503 to a POST may have been carried out; with an Idempotency-Key it may be sent again."""
    down = Answer(503, (("Retry-After", "1"),), b"maintenance")
    with pytest.raises(RateLimitedError, match="twice"):
        ask("POST", server.plan("/", down, OK), body=b"x", timer=clock)
    keyed = {"Idempotency-Key": "7"}
    assert ask("POST", server.plan("/", down, OK), body=b"x", headers=keyed, timer=clock)[0] == 200
    assert ask("GET", server.plan("/", down, OK), timer=clock)[0] == 200
    assert ask("GET", server.plan("/", down, OK), timer=clock, retry=Retry(unavailable=False)) == (503, b"maintenance")


def test_broken_connections_are_retried_by_option(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A connection that drops is the library's own error, unless the option and the request allow another attempt."""
    url, start = server.plan("/", Answer(drop=True), OK), clock.now
    retry = Retry(connection_errors=True)
    assert ask("GET", url, timer=clock, retry=retry) == (200, b"done")
    assert clock.now > start
    server.plan("/", Answer(drop=True), OK)
    with pytest.raises(Exception, match=r".") as caught:
        ask("POST", url, body=b"x", timer=clock, retry=retry)
    assert not isinstance(caught.value, RateLimitedError)
    assert type(caught.value).__module__.split(".")[0] in ("httpx", "httpx2", "requests", "aiohttp", "urllib3")


def test_nobody_listening_is_never_sent(ask: Ask, clock: ManualClock) -> None:
    """A refused connection was never made, so even a POST is tried again, up to the last attempt."""
    start = clock.now
    with pytest.raises(Exception, match=r".") as caught:
        ask("POST", "http://127.0.0.1:9/", body=b"x", timer=clock, retry=Retry(connection_errors=True, attempts=3))
    assert "3 attempts" in " ".join(getattr(caught.value, "__notes__", []))
    assert clock.now - start >= 2e9


def test_a_server_that_forbids_it_is_not_asked_again(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """`x-should-retry: false` is obeyed."""
    answer = Answer(429, (("Retry-After", "1"), ("X-Should-Retry", "false")))
    with pytest.raises(RateLimitedError, match="not to be tried again"):
        ask("GET", server.plan("/", answer, OK), timer=clock)


def test_an_aborted_wait_sends_nothing_more(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Once the abort is set, a call stops with what it has."""
    abort = Abort()
    abort.set()
    start = clock.now
    for pace in (None, Pace("9/s", store=MemoryStore(clock=clock))):
        server.seen.clear()
        with pytest.raises(RateLimitedError, match="stopped while it waited"):
            ask("GET", server.plan("/", REFUSED, OK), timer=clock, abort=abort, pace=pace)
        assert clock.now == start
        assert len(server.seen) == 1


def test_refusals_in_successes_are_seen_by_option(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """A GraphQL refusal with status 200 is waited for where the option asks to look, and left alone where not."""
    body = json.dumps({"errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}]}).encode()
    refused = Answer(200, (("Content-Type", "application/json"),), body)
    assert ask("GET", server.plan("/", refused, OK), timer=clock) == (200, body)
    assert ask("GET", server.plan("/", refused, OK), timer=clock, retry=Retry(look_into_success=True)) == (200, b"done")


def test_a_pace_is_kept_before_sending(ask: Ask, server: Scripted, clock: ManualClock) -> None:
    """Requests wait for the pace of their host; a refusal pauses it, and what can't be in time raises at once."""
    url = server.plan("/", OK)
    pace = Pace("2/s", by="host", store=MemoryStore(clock=clock))
    start = clock.now
    ask("GET", url, times=5, timer=clock, pace=pace)
    assert waited(clock, start) == 2
    server.plan("/", REFUSED, OK)
    start = clock.now
    ask("GET", url, timer=clock, pace=pace)
    assert 7 <= waited(clock, start) < 7.5 + 1e-6
    pace.pause(1000, host="127.0.0.1")
    with pytest.raises(DeadlineTooSoon) as caught:
        ask("GET", url, timer=clock, pace=pace)
    assert 999 < caught.value.retry_after <= 1001
