"""The scripts against the core: the same random history through both, every answer and every later effect compared."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Lease, Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.quota import DAY, MAX_RECOVERY_NS, SECOND, Quota
from headway.core.rule import State
from headway.stores.base import Answer, settled_bill
from headway.stores.redis import RedisStore
from headway.testing.clock import ManualClock
from servers import Server

PERIODS = (SECOND, 10 * SECOND, 60 * SECOND, DAY, 999, 1, 1_000_003, 86_400_000_000_001, 365 * DAY, 7 * SECOND // 3)
ALGORITHMS = (
    "gcra", "gcra", "leaky-bucket-queue", "fixed-window", "anchored-window", "sliding-window", "sliding-log", "concurrency",
    "growing-wait", "calendar",
)  # fmt: skip
CALENDARS = ("day in Europe/Berlin", "week in America/Havana", "month in Asia/Kathmandu", "day in UTC")


def a_limit(random: Random, name: str, algorithm: str | None = None) -> Limit:
    algorithm = algorithm or random.choice(ALGORITHMS)
    count = random.choice([1, 2, 3, 5, 7, 11, 60, 1000])
    period = random.choice(PERIODS)
    shadow = random.random() < 0.1
    if algorithm == "calendar":
        return Limit(
            name, f"{count} per {random.choice(CALENDARS)}", by="id", shadow=shadow, count_refused=random.random() < 0.2
        )
    if algorithm == "concurrency":
        return Limit(name, Quota(count, max(period, 1000), concurrent=True), by="id", shadow=shadow)
    if algorithm == "growing-wait":
        quota = Quota(1, max(1_000_001, min(period, 60 * SECOND)), burst=random.choice([1, 3]))
        return Limit(name, quota, by="id", algorithm=algorithm, shadow=shadow)
    if algorithm in ("gcra", "leaky-bucket-queue"):
        count = random.choice([1, 3, 7, 11, 1000, 3_000_000, 999_999_999_989, 10**12])
        most = min(10**12, MAX_RECOVERY_NS * count // period)
        quota = Quota(count, period, min(most, random.choice([1, 2, 5, 20, 10**6, most])))
        return Limit(name, quota, by="id", algorithm=algorithm, shadow=shadow)
    counts_refused = algorithm in ("fixed-window", "anchored-window") and random.random() < 0.2
    if algorithm == "sliding-window" and random.random() < 0.3:
        count = random.choice([10**6, 10**12])
        period = max(period, 10 * SECOND)
        if period * 1 > MAX_RECOVERY_NS or (period % 1000 and period >= 2**53):
            period = DAY
    return Limit(name, Quota(count, period), by="id", algorithm=algorithm, shadow=shadow, count_refused=counts_refused)


class Exact:
    """The core itself, one state after the other; forgets, as the scripts do, what owes nothing at the time of writing."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.states: dict[tuple[str, object], State] = {}

    def advance(self, charges: Sequence[Charge], *, commit: bool = True) -> Answer:
        now = self.clock.now // 1000 * 1000
        states = [self.states.get((charge.limit.name, charge.key)) for charge in charges]
        settled, costs = settled_bill(charges, states, now)
        for index, state in settled.writes if commit else ():
            self.put(charges[index], state, now)
        return Answer(settled.allowed, now, settled.outcomes, costs)

    def change(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        now = self.clock.now // 1000 * 1000
        in_times = []
        for change in changes:
            state = self.states.get((change.charge.limit.name, change.charge.key))
            new, in_time = change.applied(state, now)
            in_times.append(in_time)
            if new is not state:
                self.put(change.charge, new, now)
        return tuple(in_times)

    def clears_after(self, charge: Charge) -> tuple[int, int]:
        now = self.clock.now // 1000 * 1000
        return charge.limit.rule.clears_after(self.states.get((charge.limit.name, charge.key)), now, charge.cost), now

    def reset(self, charges: Sequence[Charge]) -> None:
        for charge in charges:
            self.states.pop((charge.limit.name, charge.key), None)

    def put(self, charge: Charge, state: State | None, now: int) -> None:
        rule = charge.limit.rule
        reserved = (
            charge.limit.algorithm.stored == "gcra"
            and isinstance(state, tuple)
            and len(state) > (7 if state[3:] and state[3] <= 0 else 3)
        )
        if state is None or (rule.expires_at(state) <= now and not reserved):
            self.states.pop((charge.limit.name, charge.key), None)
        else:
            self.states[charge.limit.name, charge.key] = state


class History:
    """One random history, played on both stores step by step."""

    def __init__(self, seed: int, url: str) -> None:
        self.random = Random(seed)
        self.clock = ManualClock(1_800_000_000)
        self.redis = RedisStore(url, clock=self.clock, deadline=5, refusal_cache=0)
        self.exact = Exact(self.clock)
        names = "abcd"[: self.random.randint(1, 4)]
        self.limits = [a_limit(self.random, name) for name in names]
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

    def costs(self, limit: Limit) -> int:
        burst = limit.quota.burst
        return self.random.choice([0, 1, 1, 1, 2, burst, max(1, burst // 2), burst + 1, 10**30])

    def advance(self) -> None:
        random = self.random
        key = random.choice(["x", "y"])
        lease = (
            Lease(random.getrandbits(63) or 1, random.choice([SECOND, DAY, 999, 61 * SECOND + 1]))
            if random.random() < 0.3
            else None
        )
        flexible = random.random() < 0.2
        charges = [
            Charge("n", limit, key, self.costs(limit), lease, flexible and random.random() < 0.8)
            for limit in self.limits
        ]
        commit = random.random() < 0.9
        ours = self.redis.advance(charges, commit=commit)
        exact = self.exact.advance(charges, commit=commit)
        assert ours == exact, self.where(charges)
        waits = [getattr(outcome, "retry_after", 0) or outcome.replenish_after for outcome in exact.outcomes]
        self.hint = -(-random.choice([0, *waits]) // 1000) * 1000
        if exact.allowed and commit:
            for charge, cost, outcome in zip(charges, exact.costs, exact.outcomes, strict=True):
                if cost and isinstance(outcome, Admitted):
                    self.made.append(
                        (charge, Receipt(exact.now, cost, charge.lease.token if charge.lease else 0, outcome))
                    )

    def change(self) -> None:
        random = self.random
        if not self.made:
            return
        index = random.randrange(len(self.made))
        charge, receipt = self.made[index] if random.random() < 0.3 else self.made.pop(index)
        back = random.choice([receipt.cost, receipt.cost, 0, 1, receipt.cost // 2, receipt.cost + 3])
        take = random.choice([0, 0, 0, 1, 5, charge.limit.quota.burst, 10**14])
        changes = [Change(charge, receipt, back, take, renew=random.random() < 0.1)]
        assert self.redis.change(changes) == self.exact.change(changes), self.where(changes)

    def step(self, *, back: bool) -> None:
        self.number += 1
        self.move(back=back)
        chance = self.random.random()
        if chance < 0.7:
            self.advance()
        elif chance < 0.95:
            self.change()
        elif chance < 0.98:
            charge = Charge("n", self.random.choice(self.limits), "x", self.random.choice([1, 5, 60]))
            assert self.redis.clears_after(charge) == self.exact.clears_after(charge), self.where([charge])
        else:
            charges = [Charge("n", self.random.choice(self.limits), self.random.choice("xy"), 0)]
            self.redis.reset(charges)
            self.exact.reset(charges)

    def where(self, what: Sequence[object]) -> str:
        return f"step {self.number} at {self.clock.now}: {what}"

    def close(self) -> None:
        self.redis.close()


@pytest.mark.parametrize("back", [False, True], ids=["forward", "with clock steps"])
@pytest.mark.parametrize("block", range(4))
def test_scripts_decide_and_change_as_the_core_does(redis: Server, block: int, back: bool) -> None:
    """On random histories of all algorithms, with reservations, debts, partial grants and shadows, nothing differs."""
    for seed in range(block * 25, block * 25 + 25):
        redis.flush()
        history = History(seed, redis.url)
        try:
            for _ in range(60):
                history.step(back=back)
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
        finally:
            history.close()
