"""The functions against the core: the same random history through both, every answer and every later effect compared."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import psycopg
import pytest

from headway import Limiter
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Lease, Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.quota import DAY, MAX_RECOVERY_NS, SECOND, Quota
from headway.core.rule import State
from headway.stores.base import Answer, settled_bill
from headway.stores.postgres.codec import row
from headway.stores.postgres.sync import PostgresStore
from headway.testing.clock import ManualClock
from stores.postgres.server import other_versions, postgres_server

pytestmark = pytest.mark.xdist_group("postgres")

PERIODS = (SECOND, 10 * SECOND, 60 * SECOND, DAY, 999, 1, 1_000_003, 86_400_000_000_001, 365 * DAY, 7 * SECOND // 3)
ALGORITHMS = (
    "gcra", "gcra", "leaky-bucket-queue", "fixed-window", "anchored-window", "sliding-window", "sliding-log", "concurrency",
    "growing-wait", "calendar",
)  # fmt: skip
CALENDARS = ("day in Europe/Berlin", "week in America/Havana", "month in Asia/Kathmandu", "day in UTC")


def a_limit(random: Random, name: str, algorithm: str) -> Limit:
    """A limit of that algorithm; one that is made again has another quota and the same keys."""
    count = random.choice([1, 2, 3, 5, 7, 11, 60, 1000])
    period = random.choice(PERIODS)
    shadow = random.random() < 0.1
    if random.random() < 0.03 and algorithm not in ("calendar", "concurrency"):
        return Limit(name, Quota(0, SECOND), by="id", algorithm=algorithm if algorithm != "growing-wait" else None)
    match algorithm:
        case "calendar":
            quota = f"{count} per {random.choice(CALENDARS)}"
            return Limit(name, quota, by="id", shadow=shadow, count_refused=random.random() < 0.2)
        case "concurrency":
            return Limit(name, Quota(count, max(period, 1000), concurrent=True), by="id", shadow=shadow)
        case "growing-wait":
            grows = Quota(1, max(1_000_001, min(period, 60 * SECOND)), burst=random.choice([1, 3]))
            return Limit(name, grows, by="id", algorithm=algorithm, shadow=shadow)
        case "gcra" | "leaky-bucket-queue":
            count = random.choice([1, 3, 7, 11, 1000, 3_000_000, 999_999_999_989, 10**12])
            most = min(10**12, MAX_RECOVERY_NS * count // period)
            rate = Quota(count, period, min(most, random.choice([1, 2, 5, 20, 10**6, most])))
            return Limit(name, rate, by="id", algorithm=algorithm, shadow=shadow)
    counts = algorithm in ("fixed-window", "anchored-window") and random.random() < 0.2
    return Limit(name, Quota(count, period), by="id", algorithm=algorithm, shadow=shadow, count_refused=counts)


class Exact:
    """The core itself, one state after the other."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.states: dict[tuple[str, object], State | None] = {}

    @property
    def now(self) -> int:
        return self.clock.now // 1000 * 1000

    def advance(self, charges: Sequence[Charge], *, commit: bool) -> Answer:
        places = [(charge.limit.name, charge.key) for charge in charges]
        states = [self.state(charge) for charge in charges]
        settled, costs = settled_bill(charges, states, self.now)
        for index, state in settled.writes if commit else ():
            self.states[places[index]] = state
        return Answer(settled.allowed, self.now, settled.outcomes, costs)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        in_times = []
        for change in changes:
            state = self.state(change.charge)
            new, in_time = change.applied(state, self.now)
            in_times.append(in_time)
            if new is not state:
                self.states[change.charge.limit.name, change.charge.key] = new
        return tuple(in_times)

    def state(self, charge: Charge) -> State | None:
        """A stored state as the limit's present quota reads it."""
        state = self.states.get((charge.limit.name, charge.key))
        return None if state is None or not charge.limit.quota.count else state

    def requota(self, old: Limit, new: Limit) -> None:
        for (name, key), state in self.states.items():
            if name == new.name and state is not None and new.quota.count and old.quota.count:
                self.states[name, key] = new.rule.scaled(state, self.now, old.rule)


class History:
    """One random history, played on both step by step."""

    def __init__(self, seed: int, url: str) -> None:
        self.random = Random(seed)
        self.clock = ManualClock(1_800_000_000)
        self.store = PostgresStore(url, clock=self.clock)
        self.store._until_clean = 10**9  # a clock that goes back finds again what is kept
        self.exact = Exact(self.clock)
        kinds = [self.random.choice(ALGORITHMS) for _ in range(self.random.randint(1, 4))]
        self.algorithms = dict(zip("abcd", kinds, strict=False))
        self.limits = [a_limit(self.random, name, kind) for name, kind in self.algorithms.items()]
        self.made: list[tuple[Charge, Receipt]] = []
        self.hint = 0
        self.number = 0

    def move(self, *, back: bool) -> None:
        random = self.random
        period = random.choice(self.limits).quota.period_ns
        if self.hint and random.random() < 0.4:
            self.clock.advance(ns=self.hint - random.choice([0, 0, 1000]))
        elif back and random.random() < 0.15:
            self.clock.advance(ns=-random.choice([1000, SECOND, 9 * SECOND, 30 * SECOND, period, 400 * DAY]))
        else:
            self.clock.advance(ns=random.choice([0, 0, 1, 1000, period // 7, period, period * 3 // 2, SECOND // 3]))
        self.clock.now = min(max(self.clock.now // 1000 * 1000, 10**18), 24 * 10**17)  # 2001 to 2046

    def advance(self) -> None:
        random = self.random
        lease = None
        if random.random() < 0.3:
            lease = Lease(random.getrandbits(63) or 1, random.choice([SECOND, DAY, 999, 61 * SECOND + 1]))
        key, flexible = random.choice("xy"), random.random() < 0.2
        charges = []
        for limit in random.sample(self.limits, random.choice([1, len(self.limits)])):
            burst = max(1, limit.quota.burst)
            cost = random.choice([0, 1, 1, 1, 2, burst, max(1, burst // 2), burst + 1, 10**30])
            charges.append(Charge("n", limit, key, cost, lease, flexible and random.random() < 0.8))
        commit = random.random() < 0.9
        exact = self.exact.advance(charges, commit=commit)
        assert self.store.advance(charges, commit=commit) == exact, charges
        waits = [getattr(outcome, "retry_after", 0) or outcome.replenish_after for outcome in exact.outcomes]
        self.hint = -(-random.choice([0, *waits]) // 1000) * 1000
        if exact.allowed and commit:
            for charge, cost, outcome in zip(charges, exact.costs, exact.outcomes, strict=True):
                if cost and isinstance(outcome, Admitted):
                    token = charge.lease.token if charge.lease else 0
                    self.made.append((charge, Receipt(exact.now, cost, token, outcome)))

    def change(self) -> None:
        random = self.random
        changes = []
        for _ in range(random.choice([1, 1, 2])):
            if self.made:
                index = random.randrange(len(self.made))
                charge, receipt = self.made[index] if random.random() < 0.3 else self.made.pop(index)
                now = next(limit for limit in self.limits if limit.name == charge.limit.name)
                charge = Charge(charge.namespace, now, charge.key, charge.cost, charge.lease)
                back = random.choice([receipt.cost, receipt.cost, 0, 1, receipt.cost // 2, receipt.cost + 3])
                take = random.choice([0, 0, 0, 1, 5, now.quota.burst, 10**14])
                changes.append(Change(charge, receipt, back, take, renew=random.random() < 0.1))
        if changes:
            assert self.store.change(changes) == self.exact.change(changes), changes

    def requota(self) -> None:
        random = self.random
        index = random.randrange(len(self.limits))
        old = self.limits[index]
        new = self.limits[index] = a_limit(random, old.name, self.algorithms[old.name])
        if random.random() < 0.5 and old.quota.count and new.quota.count:
            self.store.requota("n", old, new)
            self.exact.requota(old, new)

    def step(self, *, back: bool) -> None:
        self.number += 1
        self.move(back=back)
        chance = self.random.random()
        if chance < 0.68:
            self.advance()
        elif chance < 0.92:
            self.change()
        elif chance < 0.95:
            self.requota()
        elif chance < 0.98:
            charge = Charge("n", self.random.choice(self.limits), "x", self.random.choice([1, 5, 60]))
            told = charge.limit.rule.clears_after(self.exact.state(charge), self.exact.now, charge.cost)
            assert self.store.clears_after(charge) == (told, self.exact.now), charge
        else:
            charge = Charge("n", self.random.choice(self.limits), self.random.choice("xy"), 0)
            self.store.reset([charge])
            self.exact.states.pop((charge.limit.name, charge.key), None)

    def kept(self, schema: str, connection: psycopg.Connection[tuple[str, int]]) -> None:
        """What is stored at the end is what the core keeps, with the core's expiry."""
        by_name = {limit.name: limit for limit in self.limits}
        mine = {
            row(by_name[name], state)
            for (name, _), state in self.exact.states.items()
            if state is not None and by_name[name].quota.count
        }
        theirs = set(connection.execute(f"SELECT state, expires FROM {schema}.state").fetchall())
        if all(limit.quota.count for limit in self.limits):
            assert {text for text, _ in theirs} == {text for text, _ in mine}


def play(url: str, schema: str, seeds: range, *, back: bool) -> None:
    """Play histories in a schema that is there."""
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        for seed in seeds:
            connection.execute(f"TRUNCATE {schema}.state")
            history = History(seed, url)
            try:
                for _ in range(50):
                    history.step(back=back)
                history.kept(schema, connection)
            except AssertionError as error:
                raise AssertionError(f"history {seed}, step {history.number}: {error}") from error
            finally:
                history.store.close()


@pytest.mark.parametrize("back", [False, True], ids=["forward", "with clock steps"])
def test_functions_decide_and_change_as_the_core_does(back: bool, url: str, schema: str) -> None:
    """On random histories of all algorithms, with reservations, debts, partial grants, shadows and quotas that change."""
    PostgresStore(url, unlogged=True).init()
    play(url, schema, range(int(back), 32, 2), back=back)


@pytest.mark.skipif(not other_versions(), reason="this machine has no other PostgreSQL than the wheel's")
def test_so_they_do_on_other_versions() -> None:
    """On each PostgreSQL that the system has: the same histories, and a limiter's short way."""
    for binaries in other_versions():
        with postgres_server(binaries) as server:
            url = f"{server.url}?schema=limits&deadline=30s"
            PostgresStore(url).init()
            for back in (False, True):
                play(url, "limits", range(4), back=back)
            limiter = Limiter(Limit("a", "3/hour", by="id"), Limit("b", "9/hour", by="id"), store=url)
            assert [limiter.hit(id="x").allowed for _ in range(4)] == [True, True, True, False]
            limiter.close()
