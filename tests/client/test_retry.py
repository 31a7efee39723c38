"""Whether and when to try again: pure decisions, from a refusal, the attempts so far and a number for chance."""

import math
import random
from datetime import UTC, datetime

import pytest

from headway.client.attempt import Attempt, Failure, Outgoing
from headway.client.rejection import Rejection, RejectionKind
from headway.client.retry import GiveUp, Leave, Retry, Step, Wait
from headway.errors import ConfigError

NOW = datetime(2026, 8, 1, tzinfo=UTC)
GET = Outgoing.http("GET", {}, rewindable=True)
POST = Outgoing.http("POST", {}, rewindable=True)
LIMITED = Rejection(RejectionKind.RATE_LIMITED, 3.0)
UNSAID = Rejection(RejectionKind.RATE_LIMITED)


def step(
    rejection: Rejection = LIMITED,
    *,
    retry: Retry | None = None,
    request: Outgoing = GET,
    status: int = 429,
    before: int = 0,
    left: float = 300.0,
    chance: float = 0.5,
) -> Step:
    """What is done about a refusal after ``before`` equal ones."""
    history = [Attempt(number + 1, NOW, status, rejection) for number in range(before)]
    return (retry or Retry()).after_refusal(request, status, rejection, history, left, chance)


def seconds(decided: Step) -> float:
    """The wait; it must be one."""
    assert isinstance(decided, Wait)
    return decided.seconds


def why(decided: Step) -> str:
    """The reason to stop; it must be one."""
    assert isinstance(decided, GiveUp)
    return decided.why


def test_jitter_only_lengthens_a_stated_wait() -> None:
    """A thousand waits for "3" are all at least 3 and at most a second longer, and not all equal."""
    waits = {seconds(step(chance=number / 1000)) for number in range(1000)}
    assert min(waits) == 3.0
    assert 3.99 < max(waits) < 4.0
    assert len(waits) == 1000


@pytest.mark.parametrize("told", [0.001, 0.493, 1.0, 59.9, 299.0])
def test_a_stated_wait_is_never_shortened(told: float) -> None:
    """Whatever chance and cap say, the stated wait is waited in full."""
    for chance in (0.0, 0.999):
        assert seconds(step(Rejection(RejectionKind.RATE_LIMITED, told), chance=chance)) >= told


def test_a_stated_wait_is_not_capped_by_the_back_off() -> None:
    """The longest back-off says nothing about what a server states."""
    assert seconds(step(Rejection(RejectionKind.RATE_LIMITED, 171.0), chance=0.0)) == 171.0


def test_the_spread_is_the_caller_s_choice() -> None:
    """A fleet may spread further than a second."""
    assert seconds(step(retry=Retry(spread=10.0), chance=0.5)) == 8.0


def test_a_wait_of_zero_keeps_a_positive_floor() -> None:
    """A server that says "now" while it refuses is believed the less the more often it does."""
    now = Rejection(RejectionKind.RATE_LIMITED, 0)
    assert [seconds(step(now, before=number, chance=0.0)) for number in range(4)] == [1.0, 2.0, 4.0, 8.0]
    assert seconds(step(now, chance=0.999)) < 2.0


def test_no_hint_backs_off_with_full_jitter_above_a_floor() -> None:
    """Without a hint the wait is drawn between the floor and a ceiling that doubles up to a cap."""
    for before, ceiling in enumerate((2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0)):
        retry = Retry(attempts=99)
        assert seconds(step(UNSAID, retry=retry, before=before, chance=0.0)) == 1.0
        assert seconds(step(UNSAID, retry=retry, before=before, chance=1 - 2**-40)) == pytest.approx(ceiling)


def test_a_back_off_never_overflows() -> None:
    """After any number of refusals the back-off is finite and capped."""
    assert seconds(step(UNSAID, retry=Retry(attempts=10**9), before=5_000, chance=0.9)) <= 60.0


def test_documented_waits_stand_in_for_unsaid_ones() -> None:
    """GitHub's secondary limit without a hint is a minute, doubled with each further refusal."""
    secondary = Rejection(RejectionKind.RATE_LIMITED, body='{"message": "You have exceeded a secondary rate limit"}')
    waits = [seconds(step(secondary, status=403, before=number, left=1e4, chance=0.0)) for number in range(3)]
    assert waits == [60.0, 120.0, 240.0]


def test_the_deadline_stops_before_the_sleep() -> None:
    """A wait that would cross the deadline is not begun; one that ends exactly at it is."""
    assert seconds(step(left=3.0, chance=0.9)) == 3.0
    assert "deadline" in why(step(left=math.nextafter(3.0, 0)))
    assert "deadline" in why(step(UNSAID, left=0.5))
    assert seconds(step(UNSAID, left=1.5, chance=0.9)) <= 1.5


@pytest.mark.parametrize("kind", [RejectionKind.FORBIDDEN, RejectionKind.MISCONFIGURED])
def test_what_time_does_not_lift_is_left_alone(kind: RejectionKind) -> None:
    """Forbidden and misconfigured go to the caller as they are, whatever wait they state."""
    assert step(Rejection(kind, 1.0), status=403) == Leave()


def test_a_spent_quota_needs_an_exact_hint_that_fits() -> None:
    """A spent quota is only waited for where its reset is stated and in time."""
    spent = RejectionKind.QUOTA_EXHAUSTED
    assert "spent quota" in why(step(Rejection(spent)))
    assert "deadline" in why(step(Rejection(spent, 86_400.0)))
    assert seconds(step(Rejection(spent, 100.0), chance=0.0)) == 100.0


def test_an_ambiguous_refusal_is_tried_a_bounded_number_of_times() -> None:
    """A fresh key's 403 gets two more attempts by default, then it is given up."""
    unclear = Rejection(RejectionKind.AMBIGUOUS)
    assert [isinstance(step(unclear, status=403, before=number), Wait) for number in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    assert isinstance(step(unclear, status=403, retry=Retry(ambiguous=0)), GiveUp)


def test_attempts_are_bounded() -> None:
    """The last attempt's refusal is final."""
    assert isinstance(step(retry=Retry(attempts=3), before=1), Wait)
    assert "3 attempts" in why(step(retry=Retry(attempts=3), before=2))
    assert "1 attempt." in why(step(retry=Retry(attempts=1)))


def test_a_server_that_forbids_a_retry_is_obeyed() -> None:
    """Negative pushback or `x-should-retry: false` ends it, whatever wait is stated."""
    assert "not to be tried" in why(step(Rejection(RejectionKind.RATE_LIMITED, 1.0, no_retry=True)))


@pytest.mark.parametrize(
    ("request_", "status", "kind", "again"),
    [
        (GET, 503, RejectionKind.TRANSIENT, True),
        (POST, 503, RejectionKind.TRANSIENT, False),
        (POST, 503, RejectionKind.OVERLOADED, False),
        (POST, 429, RejectionKind.RATE_LIMITED, True),
        (POST, 403, RejectionKind.RATE_LIMITED, True),
        (POST, 503, RejectionKind.RATE_LIMITED, False),
        (POST, 200, RejectionKind.RATE_LIMITED, False),
        (GET, 200, RejectionKind.RATE_LIMITED, True),
        (Outgoing.http("POST", {"idempotency-key": "a"}, rewindable=True), 503, RejectionKind.TRANSIENT, True),
        (Outgoing.http("POST", [(b"Idempotency-Key", b"a")], rewindable=True), 503, RejectionKind.TRANSIENT, True),
        (Outgoing.http("POST", {"Idempotency-Key": ""}, rewindable=True), 503, RejectionKind.TRANSIENT, False),
        (Outgoing.http("PUT", {}, rewindable=False), 429, RejectionKind.RATE_LIMITED, False),
        (Outgoing.http("put", {}, rewindable=True), 503, RejectionKind.TRANSIENT, True),
        (Outgoing.http("PATCH", {}, rewindable=True), 503, RejectionKind.TRANSIENT, False),
    ],
)
def test_only_replayable_requests_are_sent_twice(
    request_: Outgoing, status: int, kind: RejectionKind, again: bool
) -> None:
    """Twice goes what is idempotent, keyed, or proven undone by a 4xx refusal, if its body can go twice."""
    decided = step(Rejection(kind, 1.0), request=request_, status=status)
    assert isinstance(decided, Wait) is again
    vouched = step(Rejection(kind, 1.0), request=request_, status=status, retry=Retry(repeat_all=True))
    assert isinstance(vouched, Wait) is request_.rewindable


def test_unavailability_is_retried_by_option() -> None:
    """With the option off, a 503 goes to the caller as it is; a limit said with a 503 is still a limit."""
    off = Retry(unavailable=False)
    assert step(Rejection(RejectionKind.TRANSIENT, 1.0), status=503, retry=off) == Leave()
    assert step(Rejection(RejectionKind.OVERLOADED, 1.0), status=529, retry=off) == Leave()
    assert isinstance(step(LIMITED, status=503, retry=off), Wait)


def test_connection_errors_are_retried_by_option() -> None:
    """Off by default; on, repeatable requests and those never sent are tried again, within attempts and deadline."""
    broken, unsent = Failure(OSError("reset")), Failure(OSError("refused"), unsent=True)
    on = Retry(connection_errors=True, attempts=2)
    assert Retry().after_failure(GET, broken, [], 300.0, 0.5) == Leave()
    assert isinstance(on.after_failure(GET, broken, [], 300.0, 0.5), Wait)
    assert isinstance(on.after_failure(POST, broken, [], 300.0, 0.5), GiveUp)
    assert isinstance(on.after_failure(POST, unsent, [], 300.0, 0.5), Wait)
    assert isinstance(on.after_failure(GET, broken, [Attempt(1, NOW)], 300.0, 0.5), GiveUp)
    assert isinstance(on.after_failure(GET, broken, [], 0.1, 0.5), GiveUp)
    assert on.after_failure(GET, Failure(ValueError("x"), connection=False), [], 300.0, 0.5) == Leave()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"deadline": 0}, "deadline"),
        ({"deadline": math.inf}, "deadline"),
        ({"deadline": math.nan}, "deadline"),
        ({"deadline": True}, "deadline"),
        ({"floor": 0}, "floor"),
        ({"floor": 3.0}, "in this order"),
        ({"spread": -1}, "spread"),
        ({"attempts": 0}, "attempts"),
        ({"attempts": 1.5}, "attempts"),
        ({"ambiguous": -1}, "ambiguous"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, float], named: str) -> None:
    """A setting that cannot be right is named when it is made."""
    with pytest.raises(ConfigError, match=named):
        Retry(**options)  # type: ignore[arg-type]


def test_a_caller_may_know_that_a_403_passes() -> None:
    """Where the caller says that a key is fresh, "forbidden" is ambiguous: a bounded number of attempts, then given up."""
    fresh = Retry(may_pass=lambda status, _: status == 403, ambiguous=2)
    forbidden = Rejection(RejectionKind.FORBIDDEN)
    assert [type(step(forbidden, status=403, retry=fresh, before=number)) for number in range(3)] == [
        Wait,
        Wait,
        GiveUp,
    ]
    assert step(forbidden, status=401, retry=fresh) == Leave()
    assert isinstance(step(forbidden, status=403, retry=fresh, request=POST), Wait)


def test_a_fleet_does_not_come_back_as_a_herd() -> None:
    """Fifty callers refused at once, told ten seconds: none is early, and a fitting spread serves all in few attempts."""
    chance, retry, per_second = random.Random(1), Retry(spread=10.0), 5
    due = [(0.0, 0)] * 50
    served: list[float] = []
    firsts: list[float] = []
    refused = Rejection(RejectionKind.RATE_LIMITED, 10.0)
    while due:
        due.sort()
        now, before = due.pop(0)
        if now and sum(now - 1 < at <= now for at in served) < per_second:
            served.append(now)
            continue
        told = refused if not now else Rejection(RejectionKind.RATE_LIMITED, 1.0)
        history = [Attempt(number + 1, NOW, 429, told) for number in range(before)]
        wait = seconds(retry.after_refusal(GET, 429, told, history, 300.0 - now, chance.random()))
        if not now:
            firsts.append(wait)
        due.append((now + wait, before + 1))
    assert len(served) == 50
    assert min(firsts) >= 10
    assert max(firsts) - min(firsts) >= 1
