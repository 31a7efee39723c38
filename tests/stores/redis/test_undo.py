"""Undoing charges of bills that failed elsewhere: never more than they were, and all of it where the key was not idle."""

from __future__ import annotations

from random import Random

import pytest

from headway.core.charge import Charge
from headway.core.lease import Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.quota import SECOND, Quota
from headway.core.rule import State
from headway.stores.base import settled_bill
from headway.stores.redis import RedisStore
from headway.stores.redis.bills import Bill, Decided
from headway.stores.redis.deciding import decide
from headway.stores.redis.undo import Undo
from headway.testing.clock import ManualClock
from servers import Server

QUOTAS = [Quota(10, SECOND, 40), Quota(1000, SECOND, 50), Quota(3, SECOND, 20), Quota(7, 60 * SECOND, 30), Quota(1, SECOND, 5)]  # fmt: skip


class Undone:
    """A key on the server, and the same key in the core to which the undone charges never happened."""

    def __init__(self, url: str, quota: Quota) -> None:
        self.clock = ManualClock(1_800_000_000)
        self.store = RedisStore(url, clock=self.clock, deadline=5, refusal_cache=0)
        self.limit = Limit("l", quota, by="id")
        self.without: State | None = None
        self.open: list[Undo] = []
        self.lost = 0

    def charge(self, cost: int, *, stays: bool) -> None:
        bill = Bill([Charge("n", self.limit, "k", cost)])
        (decided,) = self.store._drive(decide(self.store.topology, [bill], self.clock, True))
        assert isinstance(decided, Decided)
        if not decided.allowed:
            return
        (outcome,) = decided.answer.outcomes
        assert isinstance(outcome, Admitted)
        if stays:
            settled, _ = settled_bill(bill.charges, [self.without], decided.now)
            assert settled.allowed, "what passes with more on the key passes with less"
            ((_, self.without),) = settled.writes
        else:
            receipt = Receipt(decided.now, cost, 0, outcome)
            self.open.append(Undo(bill.charges[0], receipt, give_back=cost, before=decided.states[0]))

    def undo(self, index: int) -> None:
        undo = self.open.pop(index)
        self.lost += self.clock.now - undo.receipt.at
        self.store.change([undo])

    def owed(self) -> tuple[int, int]:
        """How long until the key is as if unused: on the server, and as if the undone charges had never been made."""
        charge = Charge("n", self.limit, "k", 0)
        settled, _ = settled_bill([charge], [self.without], self.clock.now)
        return self.store.advance([charge]).outcomes[0].reset_after, settled.outcomes[0].reset_after

    def close(self) -> None:
        self.store.close()


@pytest.mark.parametrize("quota", QUOTAS, ids=str)
def test_an_undone_charge_never_gives_more_than_it_took(redis: Server, quota: Quota) -> None:
    """In any order, with charges on top: at least what is owed without them, and no more than they waited for it."""
    for seed in range(40):
        redis.flush()
        random = Random(seed)
        key = Undone(redis.url, quota)
        interval = quota.period_ns // quota.count
        for step in range(30):
            pause = random.choice([0, 1000, interval // 7, interval // 2, interval, 3 * interval])
            key.clock.advance(ns=pause // 1000 * 1000)
            if key.open and random.random() < 0.5:
                key.undo(random.randrange(len(key.open)))
            else:
                key.charge(random.choice([1, 1, 1, 2, 5]), stays=random.random() < 0.4)
            ours, exact = key.owed()
            assert ours >= exact, f"history {seed}, step {step}"
        while key.open:
            key.undo(random.randrange(len(key.open)))
        ours, exact = key.owed()
        assert exact <= ours <= exact + key.lost + 1000, f"history {seed}"
        key.close()


@pytest.mark.parametrize("quota", QUOTAS, ids=str)
@pytest.mark.parametrize("first", [0, -1], ids=["oldest first", "newest first"])
def test_charges_that_fail_together_are_undone_exactly(redis: Server, quota: Quota, first: int) -> None:
    """Charges of one instant that are undone together a while later leave what time has paid of them, and no more."""
    key = Undone(redis.url, quota)
    key.charge(2, stays=True)
    for _ in range(3):
        key.charge(1, stays=False)
    assert key.open
    key.clock.advance(ns=1_000_000)
    while key.open:
        key.undo(first)
    ours, exact = key.owed()
    assert exact <= ours <= exact + 1_000_000
    key.close()


def test_a_key_that_was_reset_is_left_alone(redis: Server) -> None:
    """What was charged before a reset is not there to be undone."""
    key = Undone(redis.url, Quota(1, SECOND, 5))
    key.charge(3, stays=False)
    key.store.reset([Charge("n", key.limit, "k", 0)])
    key.charge(2, stays=True)
    key.undo(0)
    assert key.owed() == (2 * SECOND, 2 * SECOND)
    key.close()
