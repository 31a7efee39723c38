"""Callers who come back exactly when they were told to, against a simulation that is slow and obvious."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from headway import BanList, Limit, Limiter, MemoryStore
from headway.analysis.replay.obedient import DROP, KEEP, Obedient
from headway.core.quota import SECOND
from headway.policy.policy import Policy
from headway.testing import ManualClock


def policy(*limits: object) -> Policy:
    """A policy of these limits."""
    return Policy("p", limits, "p")  # type: ignore[arg-type]  # limits


def simulated(model: Obedient, arrivals: list[tuple[int, str]]) -> Obedient:
    """The model after all arrivals (second, caller), whose callers are the key too."""
    for second, caller in arrivals:
        model.arrive(caller, {"ip": caller}, second * SECOND)
    model.finish()
    return model


def test_a_refused_caller_comes_back_at_the_hint_and_the_others_follow() -> None:
    """Three at once under one a minute pass after 0, 60 and 120 seconds, and meet one refusal each time they come back early."""
    found = simulated(Obedient(policy(Limit("a", "1 per 60s", by="ip"))), [(0, "x"), (0, "x"), (10, "x")])
    assert (found.requests, found.at_once, found.later.count) == (3, 1, 2)
    assert (found.later.most, found.later.whole) == (110 * SECOND, (60 + 110) * SECOND)
    assert (found.refusals, found.waiting, found.ended) == (2, 0, 120 * SECOND)


def test_with_drop_what_comes_meanwhile_is_the_same_request() -> None:
    """A caller that waits sends nothing: what the log has of it until then is dropped, what comes after is work again."""
    found = simulated(
        Obedient(policy(Limit("a", "1 per 60s", by="ip")), DROP), [(0, "x"), (1, "x"), (2, "x"), (59, "x"), (200, "x")]
    )
    assert (found.requests, found.dropped, found.at_once, found.later.count) == (3, 2, 2, 1)
    assert found.later.most == 59 * SECOND


def test_who_was_told_an_instant_comes_before_the_log() -> None:
    """At the very second of the hint the waiting caller passes first, and the other caller's request is refused."""
    found = simulated(Obedient(policy(Limit("all", "1 per 60s"))), [(0, "x"), (1, "y"), (60, "z")])
    assert (found.at_once, found.later.count, found.later.whole) == (1, 2, (59 + 60) * SECOND)


def test_what_can_never_pass_is_given_up() -> None:
    """A ban and a count of 0 make nobody wait, and what the caller sends after it is tried."""
    limits = policy(BanList("ban", {"ip": "x"}), Limit("a", "1 per 60s", by="ip"))
    found = simulated(Obedient(limits), [(0, "x"), (0, "y"), (1, "x")])
    assert (found.given_up, found.at_once, found.refusals, found.waiting) == (2, 1, 2, 0)


def test_a_queue_s_delay_is_work_done_later() -> None:
    """A queueing leaky bucket admits and delays: the work is done at the delay's end."""
    found = simulated(
        Obedient(policy(Limit("q", "1 per 10s burst 3", by="ip", algorithm="leaky-bucket-queue"))), [(0, "x"), (0, "x")]
    )
    assert (found.at_once, found.later.count, found.later.most, found.ended) == (1, 1, 10 * SECOND, 10 * SECOND)


def test_a_herd_that_comes_back_again_and_again_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers who share one counter are all told one instant; more tries than a bound are not simulated, and it is said."""
    monkeypatch.setattr("headway.analysis.replay.obedient._TRIES", 100)
    model = Obedient(policy(Limit("all", "1 per hour")))
    for caller in range(70):
        model.arrive(f"caller {caller}", {}, 0)
    model.finish()
    assert model.cut
    assert 0 < model.waiting < 70
    assert model.at_once + model.later.count + model.waiting == 70


def test_an_unknown_mode_is_named() -> None:
    """The error says what is accepted."""
    with pytest.raises(ValueError, match="obedient is 'wait'; expected keep or drop"):
        Obedient(policy(Limit("a", "1/s")), "wait")


@dataclass
class Caller:
    """A caller of the slow simulation: what it still has to do, and when it comes back."""

    todo: list[int] = field(default_factory=list)
    back: int | None = None


def slowly(limit: Limit, arrivals: list[tuple[int, str]], mode: str) -> tuple[int, int, int, int]:
    """(passed, dropped, refusals, ns later in all): every instant at which anybody does anything, one after the other."""
    clock = ManualClock(0)
    limiter = Limiter(limit, store=MemoryStore(clock=clock))
    callers: dict[str, Caller] = {}
    log = [(second * SECOND, caller) for second, caller in arrivals]
    told: list[str] = []
    passed = dropped = refusals = later = 0
    while log or any(caller.back is not None for caller in callers.values()):
        backs = sorted((caller.back, told.index(name)) for name, caller in callers.items() if caller.back is not None)
        if backs and (not log or backs[0][0] <= log[0][0]):
            clock.now, name = backs[0][0], told[backs[0][1]]
        else:
            clock.now, name = log.pop(0)
            caller = callers.setdefault(name, Caller())
            if caller.back is not None and mode == DROP:
                dropped += 1
                continue
            caller.todo.append(clock.now)
            if caller.back is not None:
                continue
        caller = callers[name]
        caller.back = None
        while caller.todo:
            decision = limiter.hit(ip=name)
            if decision.allowed:
                passed += 1
                later += clock.now - caller.todo.pop(0)
                continue
            refusals += 1
            assert decision.retry_after_ns
            caller.back = clock.now + decision.retry_after_ns
            told = [other for other in told if other != name] + [name]
            break
    return passed, dropped, refusals, later


@pytest.mark.parametrize("mode", [KEEP, DROP])
@pytest.mark.parametrize("seed", range(12))
def test_the_model_is_the_slow_simulation(seed: int, mode: str) -> None:
    """On random arrivals of a few callers, by key and for everyone, nothing differs."""
    chance = random.Random(seed)
    quota, algorithm = chance.choice(
        [("1 per 10s", "gcra"), ("3 per 20s", "gcra"), ("2 per 15s", "fixed-window"), ("2 per 15s", "sliding-log")]
    )
    limit = Limit("a", quota, by=chance.choice([(), ("ip",)]), algorithm=algorithm)
    second, arrivals = 0, []
    for _ in range(60):
        second += chance.choice((0, 0, 1, 3, 20))
        arrivals.append((second, chance.choice("xyz")))
    found = simulated(Obedient(policy(limit), mode), arrivals)
    assert (found.at_once + found.later.count, found.dropped, found.refusals, found.later.whole) == slowly(
        limit, arrivals, mode
    )
