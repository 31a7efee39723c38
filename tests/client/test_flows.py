"""The flow that all transports share, fed with answers: no loop, no network, no time."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator
from typing import Any

import pytest

from headway import Decision, Limit, Limiter
from headway.client.attempt import Failure, Outgoing, Reply
from headway.client.flows import Acquire, Complete, Effect, Send, Sleep, sending
from headway.client.reading import read
from headway.client.retry import Retry, Wait
from headway.errors import DeadlineTooSoon, RateLimitedError
from headway.testing import ManualClock

OK: Reply[str] = Reply(200, {}, None, "done")
REFUSED: Reply[str] = Reply(429, {"Retry-After": "7"}, b"slow down", "refused")
GET = Outgoing()


@pytest.fixture
def begin(clock: ManualClock) -> Callable[..., Generator[Effect, Any, Reply[str]]]:
    """A flow on the manual clock, with no luck either way."""

    def make(retry: Retry | None = None, request: Outgoing = GET, *, paced: bool = False) -> Any:
        return sending(retry or Retry(), request, ticks=clock.ticks, now=clock, chance=lambda: 0.5, paced=paced)

    return make


def refusal() -> Decision:
    """A refusal by an own quota."""
    limiter = Limiter(Limit("own", "1/day"))
    limiter.hit()
    return limiter.hit()


def test_an_answer_is_returned_at_once(begin: Any) -> None:
    """One attempt, no wait."""
    flow = begin()
    assert next(flow) == Send()
    with pytest.raises(StopIteration) as ended:
        flow.send(OK)
    assert ended.value.value is OK


def test_a_refusal_is_slept_off(begin: Any, clock: ManualClock) -> None:
    """Seven seconds and half of the spread, then the next attempt."""
    flow = begin()
    next(flow)
    assert flow.send(REFUSED) == Sleep(7_500_000_000)
    clock.advance(7.5)
    assert flow.send(False) == Send()


def test_the_deadline_counts_what_attempts_took(begin: Any, clock: ManualClock) -> None:
    """An attempt that took long leaves less for the wait; the flow stops before the sleep that would not fit."""
    flow = begin(Retry(deadline=10))
    next(flow)
    clock.advance(3.1)
    with pytest.raises(RateLimitedError, match="deadline of 10 seconds") as caught:
        flow.send(REFUSED)
    assert caught.value.history[0].wait is None
    assert caught.value.response == "refused"


def test_an_abort_ends_the_wait(begin: Any) -> None:
    """A sleep that was aborted is followed by nothing but the refusal."""
    flow = begin()
    next(flow)
    flow.send(REFUSED)
    with pytest.raises(RateLimitedError, match="stopped"):
        flow.send(True)


def test_a_pace_is_asked_and_told(begin: Any) -> None:
    """Before each attempt the pace admits it; after it the pace learns what came of it, and how long to pause."""
    flow = begin(paced=True)
    assert next(flow) == Acquire(300.0)
    assert flow.send(None) == Send()
    told = flow.send(REFUSED)
    assert isinstance(told, Complete)
    assert (told.reply, told.pause, told.charged) == (REFUSED, 7.0, False)
    assert flow.send(None) == Sleep(0)
    assert isinstance(flow.send(False), Acquire)
    assert flow.send(None) == Send()
    assert flow.send(OK) == Complete(OK)


@pytest.mark.parametrize(
    ("answer", "pause", "charged"),
    [
        (Reply(403, {}, b'{"error": "forbidden"}', ""), None, True),
        (Reply(403, {}, b'{"message": "the key is being verified"}', ""), None, True),
        (Reply(429, {"Retry-After": "86400"}, b"daily limit exceeded", ""), 86_400.0, False),
        (Reply(400, {}, b"rate limit exceeded", ""), 1.5, False),
        (Reply(503, {"Retry-After": "3"}, b"maintenance", ""), 3.0, True),
    ],
)
def test_only_what_concerns_all_pauses_all(answer: Reply[str], pause: float | None, charged: bool, begin: Any) -> None:
    """A refusal that waiting lifts pauses everybody, as long as told or as long as it waits itself; only what a limiter refused is given back."""
    flow = begin(paced=True)
    next(flow)
    flow.send(None)
    told = flow.send(answer)
    assert isinstance(told, Complete)
    assert (told.pause, told.charged) == (pause, charged)


def test_a_pace_without_room_raises_what_it_said(begin: Any) -> None:
    """Before the first attempt it is the pace's own error; after a refusal, that refusal with its history."""
    flow = begin(paced=True)
    next(flow)
    with pytest.raises(DeadlineTooSoon):
        flow.throw(DeadlineTooSoon(refusal()))
    flow = begin(paced=True)
    next(flow)
    flow.send(None)
    flow.send(REFUSED)
    flow.send(None)
    flow.send(False)
    with pytest.raises(RateLimitedError, match="shared pace") as caught:
        flow.throw(DeadlineTooSoon(refusal()))
    assert caught.value.body == b"slow down"
    assert isinstance(caught.value.__cause__, DeadlineTooSoon)


def test_a_cancelled_attempt_ends_its_slot(begin: Any) -> None:
    """Whatever ends an attempt from outside is passed on, after the pace was told."""
    flow = begin(paced=True)
    next(flow)
    flow.send(None)
    assert flow.throw(KeyboardInterrupt()) == Complete()
    with pytest.raises(KeyboardInterrupt):
        flow.send(None)


def test_a_connection_error_comes_out_with_what_was_tried(begin: Any) -> None:
    """The library's own error, with the attempts before it as notes; what was never sent is not charged."""
    error = OSError("reset")
    flow = begin(Retry(connection_errors=True, attempts=2), paced=True)
    next(flow)
    flow.send(None)
    flow.send(REFUSED)
    flow.send(None)
    flow.send(False)
    flow.send(None)
    assert flow.send(Failure(error, unsent=True)) == Complete(charged=False)
    with pytest.raises(OSError, match="reset") as caught:
        flow.send(None)
    assert caught.value is error
    assert "2 attempts" in error.__notes__[0]
    assert "Try again in 7 seconds" in error.__notes__[1]


@pytest.mark.parametrize(
    ("date", "local", "least", "most"),
    [
        ("Mon, 23 Oct 2023 21:48:42 GMT", 1_698_097_722, 1, 2),
        ("Mon, 23 Oct 2023 21:47:42 GMT", 1_698_097_752, 60, 62),
        ("Mon, 23 Oct 2023 21:47:42 GMT", 1_698_094_062, 60, 62),
        (None, 1_698_097_700, 22, 24),
    ],
)
@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_resets_are_measured_on_the_server_s_clock(
    date: str | None, local: int, least: float, most: float, chance: float
) -> None:
    """The wait is reset − Date whatever the caller's clock says, never 0 (octokit/plugin-throttling.js#599)."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1698097722"} | ({"Date": date} if date else {})
    rejection = read(403, headers, "", received_at=local)
    assert rejection is not None
    step = Retry().after_refusal(GET, 403, rejection, [], 300.0, chance)
    assert isinstance(step, Wait)
    assert least <= step.seconds <= most


def test_the_final_failure_can_be_sent_to_another_process(begin: Any) -> None:
    """Pickled, it keeps its text, refusal and history; the library's response stays behind."""
    flow = begin(Retry(attempts=1))
    next(flow)
    with pytest.raises(RateLimitedError) as caught:
        flow.send(REFUSED)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.rejection, copy.history) == (
        str(caught.value),
        caught.value.rejection,
        caught.value.history,
    )
    assert (copy.response, copy.body) == (None, b"slow down")
    too_soon = pickle.loads(pickle.dumps(DeadlineTooSoon(refusal())))
    assert too_soon.retry_after > 0
    assert not too_soon.at_most
