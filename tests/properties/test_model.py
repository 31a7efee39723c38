"""Random mixes of everything a caller can do, in memory and SQLite, against slow exact models of every algorithm."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_models import Charged, GcraModel, Model, model_of
from headway import Decision, Limit, Limiter
from headway.core.limit import Algorithm
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import DAY, HOUR, MINUTE, SECOND, Quota
from headway.limiter.reservation import Reservation
from headway.testing.clock import ManualClock
from ways import STORES

LIKE_GCRA = [
    Algorithm.GCRA,
    Algorithm.TOKEN_BUCKET,
    Algorithm.LEAKY_BUCKET,
    Algorithm.LEAKY_BUCKET_QUEUE,
    Algorithm.MINIMUM_INTERVAL,
]
WINDOWS = [Algorithm.FIXED_WINDOW, Algorithm.ANCHORED_WINDOW, Algorithm.CALENDAR_WINDOW]
ALL = list(Algorithm)
KEYS = ["a", "b"]
MANY = settings.default.max_examples if settings.default else 100
MOST_STEPS_BACK = 9 * SECOND
ZONES = ["UTC", "Europe/Berlin", "America/Havana", "Africa/Cairo", "Asia/Kathmandu", "Australia/Lord_Howe"]


@st.composite
def limits(draw: st.DrawFn, name: str, among: list[Algorithm], *, whole: bool = False) -> Limit:
    """Any limit of some algorithms; with ``whole`` the emission interval is a whole number of nanoseconds."""
    algorithm = draw(st.sampled_from(among))
    if algorithm is Algorithm.CALENDAR_WINDOW:
        unit = draw(st.sampled_from(["day", "week", "week starting sunday", "month"]))
        quota = f"{draw(st.integers(1, 6))} per {unit} in {draw(st.sampled_from(ZONES))}"
        return Limit(name, quota, by="id", count_refused=draw(st.booleans()))
    count = draw(st.integers(1, 6))
    period = draw(st.sampled_from([SECOND, 10 * SECOND, MINUTE, HOUR, DAY, 1_000_003]))
    if whole:
        period -= period % count
    if algorithm is Algorithm.CONCURRENCY:
        return Limit(name, Quota(count, period, concurrent=True), by="id")
    if algorithm is Algorithm.GROWING_WAIT:
        longest = draw(st.integers(1, 40)) * period
        quiet = longest * draw(st.integers(1, 3))
        quota = Quota(count, period, draw(st.integers(1, 4)))
        return Limit(name, quota, by="id", algorithm=algorithm, longest=longest, forgiven_after=quiet)
    burst = draw(st.integers(1, 8)) if algorithm in LIKE_GCRA[:-1] else count
    undelayed = draw(st.integers(1, burst)) if algorithm is Algorithm.LEAKY_BUCKET_QUEUE else 1
    counts = algorithm in WINDOWS and draw(st.booleans())
    return Limit(
        name, Quota(count, period, burst), by="id", algorithm=algorithm, undelayed=undelayed, count_refused=counts
    )


@st.composite
def policies(draw: st.DrawFn, among: list[Algorithm], *, whole: bool = False) -> list[Limit]:
    return [draw(limits(f"l{number}", among, whole=whole)) for number in range(draw(st.integers(1, 3)))]


@dataclass(frozen=True)
class Step:
    kind: str
    key: str
    cost: int
    share: float
    hint: int | None
    number: int


@st.composite
def steps(draw: st.DrawFn, kinds: list[str], back: float = 0.0) -> Step:
    """One call, after a move of the clock: a share of the first limit's period, or exactly a told wait, or 1 ns less."""
    share = draw(st.one_of(st.just(0.0), st.floats(0, 0.4), st.floats(0, 2.5)))
    if back and draw(st.integers(0, 2)) == 0:
        share = -draw(st.one_of(st.floats(0, back), st.sampled_from([1e-9, 0.01, 0.1])))
    cost = draw(st.one_of(st.just(1), st.integers(0, 5), st.integers(0, 9)))
    hint = draw(st.sampled_from([None, None, 0, -1]))
    return Step(draw(st.sampled_from(kinds)), draw(st.sampled_from(KEYS)), cost, share, hint, draw(st.integers(0, 99)))


Charges = tuple[tuple[str, str], Charged, Charged]
"""(limit's name, key), and what was charged there as counted and as if."""


@dataclass
class Open:
    """A charge that can be given back, and what it is in the models: (as counted, as if)."""

    made: Decision | Reservation
    charged: list[Charges]
    ends: int | None


@dataclass
class World:
    """A limiter on a store and, for every key of every limit, two models.

    ``counted`` has what the store kept charged and predicts every field of every outcome. ``as_if`` has only what was
    not given back: a key never owes less than it says. They differ where several refunds of GCRA keep more than needed.
    """

    limiter: Limiter
    clock: ManualClock
    counted: dict[tuple[str, str], Model] = field(default_factory=dict)
    as_if: dict[tuple[str, str], Model] = field(default_factory=dict)
    open: list[Open] = field(default_factory=list)
    told: int = 0

    @property
    def now(self) -> int:
        return self.clock.now

    def models(self, key: str) -> list[Model]:
        found = []
        for limit in self.limiter.limits:
            for models in (self.counted, self.as_if):
                models.setdefault((limit.name, key), model_of(limit)).quota(limit)
            found.append(self.counted[limit.name, key])
        return found

    def ask(self, step: Step) -> None:
        """``hit`` (of one cost, several, or what fits), ``peek`` or ``reserve``: every field of the decision is the models'."""
        models, now = self.models(step.key), self.now
        costs = [step.cost] * len(models)
        if step.kind == "costs":
            costs = [(step.cost + index * step.number) % 7 for index in range(len(models))]
        if step.kind == "up to":
            fits = max(1, min(model.fits(now) for model in models))
            costs = [min(max(1, step.cost), fits)] * len(models)
        cost = {model.limit.name: each for model, each in zip(models, costs, strict=True)}
        allowed = all(model.fits(now) >= each for model, each in zip(models, costs, strict=True))
        ttl = [0.5, 1e6][step.number % 2]
        made: Decision | Reservation
        match step.kind:
            case "reserve":
                made = self.limiter.reserve(id=step.key, cost=cost, ttl=ttl)
                decision = made.decision
            case "up to":
                made = decision = self.limiter.hit(id=step.key, up_to=max(1, step.cost))
                assert decision.granted == (costs[0] if allowed else 0)
            case "peek":
                made = decision = self.limiter.peek(id=step.key, cost=cost)
            case _:
                made = decision = self.limiter.hit(id=step.key, cost=cost)
        charged: list[Charges] = []
        expected: dict[str, Outcome] = {}
        for model in models:
            self.answered(model, step, cost[model.limit.name], allowed, expected, charged)
        assert decision.allowed is allowed
        assert dict(decision.outcomes) == expected
        waits = [outcome.retry_after for outcome in expected.values() if isinstance(outcome, Refused)]
        nevers = [name for name, outcome in expected.items() if isinstance(outcome, Never)]
        assert decision.retry_after_ns == (0 if allowed else None if nevers else max(waits))
        self.told = max(waits, default=max(outcome.replenish_after for outcome in expected.values()))
        if charged:
            lease = ceil(ttl * SECOND) if step.kind == "reserve" else None
            self.open.append(Open(made, charged, None if lease is None else now + lease))

    def answered(
        self, model: Model, step: Step, cost: int, allowed: bool, expected: dict[str, Outcome], charged: list[Charges]
    ) -> None:
        """One limit's outcome, and what it was charged."""
        name, now = model.limit.name, self.now
        if not allowed and cost > model.fits(now):
            if cost and step.kind != "peek":
                model.refuse(now, cost)
                self.as_if[name, step.key].refuse(now, cost)
            expected[name] = refused(model, now, cost, counted=step.kind == "peek" and model.limit.count_refused)
            return
        before = list(model.history)
        held = model.charge(now, cost) if allowed and cost else None
        if held and step.kind != "peek":
            charged.append(((name, step.key), held, self.as_if[name, step.key].charge(now, cost)))
        expected[name] = admitted(model, now, bool(held))
        if held and step.kind == "peek":
            model.history = before  # a look writes nothing: what has ended is not forgotten by it either

    def reset(self, step: Step) -> None:
        """The key is as if unused, and what was charged to it is nobody's to give back."""
        self.limiter.reset(id=step.key)
        for limit in self.limiter.limits:
            self.counted.pop((limit.name, step.key), None)
            self.as_if.pop((limit.name, step.key), None)
        self.open = [it for it in self.open if all(key != step.key for (_, key), _, _ in it.charged)]

    def settle(self, step: Step) -> None:
        """``refund`` a hit, or ``commit`` or ``cancel`` a reservation; then the keys owe no less than as if."""
        if not self.open:
            return
        it = self.open.pop(step.number % len(self.open))
        late = it.ends is not None and self.now >= it.ends
        if isinstance(it.made, Decision):
            actual = 0
            settled = self.limiter.refund(it.made)
        else:
            actual = step.cost if step.number % 2 else 0
            settled = it.made.commit(actual) if step.number % 2 else it.made.cancel()
        again = self.limiter.refund(it.made) if isinstance(it.made, Decision) else it.made.commit()
        assert not again, "the second time nothing happens"
        assert not (late and settled) or self.only_holds(it)
        for place, counted, as_if in it.charged:
            model, pure = self.counted[place], self.as_if[place]
            if late and model.limit.algorithm is not Algorithm.CONCURRENCY:
                continue
            units = counted.units
            for each, mine in ((model, counted), (pure, as_if)):
                if model.limit.algorithm is Algorithm.CONCURRENCY:
                    each.give_back(mine, units, self.now)
                elif actual < units:
                    each.give_back(mine, units - actual, self.now)
                elif actual > units:
                    each.charge(self.now, actual - units)
            if isinstance(model, GcraModel) and isinstance(pure, GcraModel):
                self.compare(place, model, pure)

    def only_holds(self, it: Open) -> bool:
        return all(self.counted[place].limit.algorithm is Algorithm.CONCURRENCY for place, _, _ in it.charged)

    def compare(self, place: tuple[str, str], model: GcraModel, pure: GcraModel) -> None:
        """What is owed now, exactly (whole intervals): at least as if. The model goes on from there."""
        name, key = place
        owed = self.limiter.peek(id=key, cost=0).outcomes[name].reset_after
        assert owed >= pure.owed(self.now)
        model.history = [Charged(self.now, 0, Fraction(owed))]


def admitted(model: Model, now: int, charged: bool) -> Admitted:
    fits = model.fits(now)
    delay = 0
    if charged and isinstance(model, GcraModel) and model.limit.algorithm is Algorithm.LEAKY_BUCKET_QUEUE:
        delay = ceil(model.delay(now))
    reset = model.reset(now)
    return Admitted(fits, model.wait(now, fits + 1) if fits < model.most else reset, reset, delay)


def refused(model: Model, now: int, cost: int, *, counted: bool) -> Outcome:
    """After a refused request; ``counted``: one that was only looked at, and would be counted."""
    fits = model.fits(now)
    reset = model.reset(now)
    replenish = model.wait(now, fits + 1) if fits < model.most else reset
    if cost > model.most:
        return Never(model.most, fits, replenish, reset)
    if counted:
        model.charge(now, fits)
        fits, replenish, reset = 0, model.wait(now, 1), model.reset(now)
        model.history.pop()
    at_most = model.limit.algorithm is Algorithm.CONCURRENCY
    return Refused(fits, model.wait(now, cost), replenish, reset, at_most)


@contextmanager
def world(store: str, policy: list[Limit]) -> Iterator[World]:
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder, closing(STORES[store](clock, Path(folder))) as opened:
        yield World(Limiter(*policy, store=opened), clock)


def play(store: str, policy: list[Limit], history: list[Step], changed: list[Limit] | None = None) -> None:
    with world(store, policy) as it:
        latest = it.now
        for step in history:
            move = int(policy[0].quota.period_ns * step.share)
            if step.share < 0:
                move = -int(MOST_STEPS_BACK * -step.share)
            elif step.hint is not None and it.told:
                move = max(0, it.told + step.hint)
            it.clock.now = max(it.now + move, latest - MOST_STEPS_BACK)
            latest = max(latest, it.now)
            if step.kind in ("hit", "peek", "reserve", "costs", "up to"):
                it.ask(step)
            elif step.kind == "reset":
                it.reset(step)
            elif step.kind == "settle":
                it.settle(step)
            elif step.kind == "quota" and changed:
                new = changed[step.number % len(changed)]
                it.limiter.change_quota(new.name, new.quota)


@pytest.mark.parametrize("store", STORES)
@given(data=st.data())
@settings(max_examples=MANY * 6 // 10)
def test_every_mix_of_algorithms_answers_as_the_exact_models_do(store: str, data: st.DataObject) -> None:
    """One to three limits of any algorithms and any numbers, hits and peeks: decision, remaining and all waits, to the ns."""
    policy = data.draw(policies(ALL))
    play(store, policy, data.draw(st.lists(steps(["hit", "hit", "peek"]), max_size=14)))


@pytest.mark.parametrize("store", STORES)
@given(data=st.data())
@settings(max_examples=MANY)
def test_reservations_and_refunds_leave_what_the_models_say(store: str, data: st.DataObject) -> None:
    """Reserved, committed for less or more, cancelled, refunded, expired, in any order: exact, and never below as if."""
    policy = data.draw(policies(ALL, whole=True))
    kinds = ["hit", "peek", "reserve", "reserve", "settle", "settle"]
    play(store, policy, data.draw(st.lists(steps(kinds), max_size=14)))


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize("store", STORES)
@given(data=st.data())
@settings(max_examples=MANY * 2 // 10)
def test_a_clock_set_back_a_little_changes_no_answer(store: str, algorithm: Algorithm, data: st.DataObject) -> None:
    """Steps back of up to nine seconds neither refill nor reset: what was charged stays where it was charged.

    One key alone: when another comes, a store may forget one that has recovered, and after a step back both is right.
    """
    policy = [data.draw(limits("l", [algorithm], whole=True))]
    kinds = ["hit", "hit", "hit", "peek"]
    history = data.draw(st.lists(steps(kinds, back=1.0), min_size=4, max_size=10))
    play(store, policy, [replace(step, key="a") for step in history])


@pytest.mark.parametrize("store", STORES)
@given(data=st.data())
@settings(max_examples=MANY)
def test_everything_a_caller_can_do_in_any_order_leaves_what_the_models_say(store: str, data: st.DataObject) -> None:
    """One cost, several, what fits; looks, reservations, commits, refunds, resets, quotas changed as is: any algorithms."""
    policy = data.draw(policies(ALL, whole=True))
    changed = [data.draw(like(limit)) for limit in policy]
    kinds = ["hit", "hit", "costs", "costs", "up to", "peek", "reserve", "settle", "settle", "reset", "quota"]
    play(store, policy, data.draw(st.lists(steps(kinds), max_size=14)), [*policy, *changed])


def like(limit: Limit) -> st.SearchStrategy[Limit]:
    """The same limit with another count (and burst); an emission interval stays a whole number of nanoseconds."""

    def other(count: int, burst: int) -> Limit:
        quota = limit.quota
        if (
            limit.algorithm in (Algorithm.GROWING_WAIT, *LIKE_GCRA)
            and limit.algorithm is not Algorithm.MINIMUM_INTERVAL
        ):
            return replace(limit, quota=Quota(quota.count, quota.period_ns, max(burst, limit.undelayed)))
        period = (
            quota.period_ns - quota.period_ns % count
            if limit.algorithm is Algorithm.MINIMUM_INTERVAL
            else quota.period_ns
        )
        same = replace(quota, count=count, burst=1 if limit.algorithm is Algorithm.MINIMUM_INTERVAL else count)
        return replace(limit, quota=replace(same, period_ns=period))

    return st.builds(other, st.integers(1, 8), st.integers(1, 8))


@pytest.mark.parametrize("store", STORES)
@given(data=st.data())
@settings(max_examples=MANY * 4 // 10)
def test_a_quota_changed_while_running_keeps_what_was_charged(store: str, data: st.DataObject) -> None:
    """As is: GCRA keeps the time that is owed whatever the new quota, logs and leases their units under another count."""
    policy = data.draw(policies([*LIKE_GCRA[:1], Algorithm.SLIDING_LOG, Algorithm.FIXED_WINDOW]))
    changed = []
    for limit in policy:
        count = data.draw(st.integers(1, 8))
        period = limit.quota.period_ns * (
            data.draw(st.sampled_from([1, 2])) if limit.algorithm is Algorithm.GCRA else 1
        )
        changed.append(Limit(limit.name, Quota(count, period), by="id", algorithm=limit.algorithm))
    history = data.draw(st.lists(steps(["hit", "hit", "peek", "quota"]), max_size=14))
    play(store, policy, history, [*policy, *changed])
