"""What shadow limits would have refused, counted beside the enforced ones."""

from __future__ import annotations

import asyncio
import pickle
import random
import threading
from datetime import datetime
from pathlib import Path

import pytest

from headway import AllowList, AsyncLimiter, Limit, Limiter, MemoryStore, Overridden, TieredLimit, UnknownName, When
from headway.errors import StoreUnavailable
from headway.limiter.shadow import ShadowCount
from headway.testing import ManualClock

TRIAL = Limit("trial", "2 per hour", by="id", shadow=True)
REAL = Limit("real", "3 per hour", by="id")


def limiter(*limits: object, clock: ManualClock | None = None, **options: object) -> Limiter:
    """A limiter on a manual clock."""
    return Limiter(*limits, store=MemoryStore(clock=clock or ManualClock()), **options)  # type: ignore[arg-type]  # options pass through


def numbers(count: ShadowCount) -> tuple[int, int, int, int | None, int | None]:
    """Everything that is counted."""
    return count.requests, count.would_refuse, count.newly_refused, count.callers, count.callers_refused


def test_what_would_have_been_refused_is_counted() -> None:
    """Requests, refusals that it would have made, those that enforcing it would add, and whose they are."""
    ours = limiter(TRIAL, REAL)
    assert [ours.hit(id="a").allowed for _ in range(5)] == [True, True, True, False, False]
    assert ours.hit(id="b")
    count = ours.shadow_report().of("trial")
    assert numbers(count) == (6, 3, 1, 2, 1)
    assert (count.share, count.callers_share, count.exact) == (0.5, 0.5, True)


def test_a_file_s_decisions_are_counted_too(tmp_path: Path) -> None:
    """On SQLite the counts are those on memory."""
    with Limiter(TRIAL, REAL, store=f"sqlite:///{tmp_path / 'limits.db'}") as ours:
        assert [ours.hit(id=key).allowed for key in "aaaaab"] == [True, True, True, False, False, True]
        assert numbers(ours.shadow_report().of("trial")) == (6, 3, 1, 2, 1)


def test_enforced_limits_decide_as_if_the_shadow_were_not_there() -> None:
    """On random requests every decision, wait and count left is what it is without the shadow limits."""
    for seed in range(20):
        chance = random.Random(seed)
        clock = ManualClock()
        shadows = [
            Limit(f"shadow-{n}", f"{chance.randrange(4)} per {chance.choice((1, 7, 60))}s", by="id", shadow=True)
            for n in range(2)
        ]
        real = [Limit("a", "3 per 10s", by="id"), Limit("b", "5 per 60s", algorithm="fixed-window")]
        alone, beside = limiter(*real, clock=clock), limiter(shadows[0], *real, shadows[1], clock=clock)
        for _ in range(60):
            clock.advance(chance.choice((0, 0, 1, 5)))
            key, cost = chance.choice("xy"), chance.choice((1, 1, 2))
            one, other = alone.hit(id=key, cost=cost), beside.hit(id=key, cost=cost)
            assert (one.allowed, one.limit, one.retry_after_ns, one.remaining) == (
                other.allowed,
                other.limit,
                other.retry_after_ns,
                other.remaining,
            )
            assert one.headers() == other.headers()


def test_the_counts_are_those_of_the_limit_enforced_alone() -> None:
    """Where nothing else refuses, a shadow limit would have refused exactly what it refuses when it is enforced."""
    chance = random.Random(7)
    for algorithm in ("gcra", "fixed-window", "sliding-log", "sliding-window", "anchored-window"):
        clock = ManualClock()
        shadow = limiter(Limit("trial", "3 per 10s", by="id", algorithm=algorithm, shadow=True), clock=clock)
        enforced = limiter(Limit("trial", "3 per 10s", by="id", algorithm=algorithm), clock=clock)
        refused: list[str] = []
        for _ in range(300):
            clock.advance(chance.random() * 2)
            key = chance.choice("abcd")
            assert shadow.hit(id=key)
            if not enforced.hit(id=key):
                refused.append(key)
        assert numbers(shadow.shadow_report().of("trial")) == (300, len(refused), len(refused), 4, len(set(refused)))


def test_only_what_is_asked_for_good_is_counted() -> None:
    """Peeks, explanations, costs of 0 and exempt requests are no requests; a reservation and a wait are one each."""
    ours = limiter(TRIAL, REAL, exempt=AllowList({"id": "boss"}))
    ours.peek(id="a")
    ours.explain(id="a")
    ours.hit(id="a", cost=0)
    ours.hit(id="boss")
    assert ours.shadow_report().of("trial").requests == 0
    ours.reserve(id="a").commit(1)
    ours.wait(id="a")
    ours.hit(id="a", up_to=1)
    assert numbers(ours.shadow_report().of("trial")) == (3, 1, 1, 1, 1)
    ours.wait(id="a")  # three attempts at most, one request
    assert ours.shadow_report().of("trial").requests == 4
    with ours.admitted(id="c"):
        pass
    assert ours.shadow_report().of("trial").requests == 5


def test_each_tier_is_counted_where_tiers_are_known() -> None:
    """A shadow limit's own tiers, or else those of the policy's first limit with tiers, divide what is said."""
    tiers = {"free": "2/hour", "pro": "4/hour"}
    own = limiter(TieredLimit("api", tiers, by="id", tier="plan", shadow=True, unknown="free", missing="free"))
    others = limiter(TRIAL, TieredLimit("api", tiers, by="id", tier="plan", unknown="free", missing="free"))
    wrapped = limiter(
        When({"path": "/a"}, Overridden(TieredLimit("api", tiers, by="id", tier="plan", shadow=True), {"x": "9/s"}))
    )
    for _ in range(3):
        for ours in (own, others):
            ours.hit(id="f", plan="free")
            ours.hit(id="p", plan="pro")
            ours.hit(id="q", plan="platinum")
            ours.hit(id="m")
        wrapped.hit(id="p", plan="pro", path="/a")
        wrapped.hit(id="f", plan="free", path="/a")
    found = {count.tier: numbers(count) for count in own.shadow_report().counts}
    assert found == {
        None: (12, 3, 3, 4, 3),
        "free": (3, 1, 1, 1, 1),
        "pro": (3, 0, 0, 1, 0),
        "(unknown)": (3, 1, 1, 1, 1),
        "(missing)": (3, 1, 1, 1, 1),
    }
    assert numbers(others.shadow_report().of("trial", "pro")) == (3, 1, 1, 1, 1)
    assert numbers(wrapped.shadow_report().of("api", "free")) == (3, 1, 1, 1, 1)
    assert numbers(wrapped.shadow_report().of("api", "pro")) == (3, 0, 0, 1, 0)


def test_a_limit_that_does_not_apply_is_not_asked() -> None:
    """A request that does not meet a shadow limit's condition is none of its requests."""
    ours = limiter(When({"method": "POST"}, TRIAL))
    for method in ("GET", "POST", "GET"):
        ours.hit(id="a", method=method)
    assert ours.shadow_report().of("trial").requests == 1


def test_a_limit_without_a_key_has_no_callers() -> None:
    """What is one counter for everyone says nothing of callers."""
    ours = limiter(Limit("all", "1 per hour", shadow=True))
    ours.hit()
    ours.hit()
    assert numbers(ours.shadow_report().of("all")) == (2, 1, 1, None, None)
    assert ours.shadow_report().of("all").callers_share is None
    assert str(ours.shadow_report()) == "all: would have refused 50 % (1 of 2) of the requests"


def test_the_report_says_it_in_words_and_as_data() -> None:
    """Shares come with their numbers; few are not said to be none; what was refused anyway is said."""
    ours = limiter(TRIAL, REAL, TieredLimit("api", {"pro": "9000/hour"}, by="id", tier="plan"))
    assert str(ours.shadow_report()) == "trial: no request so far"
    for _ in range(5):
        ours.hit(id="a", plan="pro")
    assert str(ours.shadow_report()).splitlines() == [
        "trial: would have refused 60 % (3 of 5) of the requests and 100 % (1 of 1) of the callers; refused anyway: 2",
        "trial: would have refused 60 % (3 of 5) of the requests of tier pro and 100 % (1 of 1) of the callers; "
        "refused anyway: 2",
    ]
    for number in range(3000):
        ours.hit(id=f"caller {number}", plan="pro")
    said = str(ours.shadow_report())
    assert "less than 0.1 % (3 of 3,005) of the requests" in said
    assert "about less than 0.1 % (1 of " in said
    found = ours.shadow_report().to_dict()
    assert datetime.fromisoformat(found["since"]).tzinfo is not None
    assert found["counts"][0] == {
        "limit": "trial",
        "tier": None,
        "requests": 3005,
        "would_refuse": 3,
        "newly_refused": 1,
        "callers": found["counts"][0]["callers"],
        "callers_refused": 1,
        "exact": False,
        "undecided": 0,
        "share": 3 / 3005,
        "callers_share": 1 / found["counts"][0]["callers"],
    }
    assert 2500 < found["counts"][0]["callers"] < 3500


def test_an_unknown_limit_or_tier_is_named() -> None:
    """A typo says what there is."""
    ours = limiter(TRIAL, REAL)
    with pytest.raises(UnknownName, match="no shadow limit is named 'real'; known: trial"):
        ours.shadow_report().of("real")
    with pytest.raises(UnknownName, match="no tier is named 'pro'"):
        ours.shadow_report().of("trial", "pro")
    assert limiter(REAL).shadow_report().counts == ()


def test_a_changed_quota_is_counted_anew() -> None:
    """What another quota would have refused says nothing of this one."""
    ours = limiter(TRIAL, REAL)
    for _ in range(3):
        ours.hit(id="a")
    ours.change_quota("trial", "9 per hour")
    assert ours.shadow_report().of("trial").requests == 0
    ours.hit(id="b")
    assert numbers(ours.shadow_report().of("trial")) == (1, 0, 0, 1, 0)


def test_a_store_that_is_away_is_not_counted() -> None:
    """Where nobody evaluated the shadow limit, nothing is said of the request."""

    class Store:
        def advance(self, charges: object, *, commit: bool = True) -> object:
            raise StoreUnavailable("away")

    ours = Limiter(TRIAL, store=Store())  # type: ignore[arg-type]  # enough of one
    assert ours.hit(id="a").degraded
    assert ours.shadow_report().of("trial").requests == 0


def test_threads_lose_no_count() -> None:
    """Eight threads at once count every request once."""
    ours = limiter(Limit("trial", "0/s", by="id", shadow=True))
    barrier = threading.Barrier(8)

    def work(name: str) -> None:
        barrier.wait()
        for number in range(300):
            ours.hit(id=f"{name} {number % 10}")

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(ours.shadow_report().of("trial")) == (2400, 2400, 2400, 80, 80)


def test_the_asynchronous_twin_counts_the_same() -> None:
    """``AsyncLimiter`` gives the same report, without await: it asks no store."""

    async def main() -> AsyncLimiter:
        ours = AsyncLimiter(TRIAL, REAL, store=MemoryStore(clock=ManualClock()))
        for _ in range(5):
            await ours.hit(id="a")
        await ours.peek(id="a")
        await (await ours.reserve(id="b")).commit(1)
        return ours

    assert numbers(asyncio.run(main()).shadow_report().of("trial")) == (6, 3, 1, 2, 1)


def test_a_pickled_copy_counts_for_itself() -> None:
    """Another process begins with no counts."""
    ours = limiter(TRIAL)
    copy = pickle.loads(pickle.dumps(Limiter(TRIAL)))
    ours.hit(id="a")
    assert copy.shadow_report().of("trial").requests == 0
    copy.hit(id="a")
    assert copy.shadow_report().of("trial").requests == 1
