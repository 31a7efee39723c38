"""Many bills in one script call, against the core: plain and other limits mixed, refusals in between, foreign keys anywhere."""

from __future__ import annotations

import struct
from random import Random

import pytest
import redis as redis_py

from headway.core.charge import Charge
from headway.core.lease import Lease
from headway.core.limit import Algorithm
from headway.core.quota import DAY, SECOND
from headway.errors import StoreUnusable
from headway.stores.redis.bills import Bill, Decided, Packed
from headway.stores.redis.codec import form_of
from headway.stores.redis.deciding import decide
from headway.stores.redis.keys import stored_key
from servers import Server
from stores.redis.test_differential import History, a_limit

NAN, INF = float("nan"), float("inf")
NO_TATS = [
    *(b"", b"hello", b"nan", b"inf", b"0x10", b" 5", b"5 ", b"1e15", b"-5", b"+5", b"5.5", b"r1:2:3", b"x" * 24, b"9" * 400),
    *(struct.pack("<ddd", *one) for one in [(-1, 1, 3), (NAN, 1, 3), (INF, 1, 3), (1e15, NAN, 3), (1e15, 3, 3), (1, 1, NAN)]),
]  # fmt: skip
NO_COUNTERS = [b"", b"hello", b"nan", b"hello:world", b" 1:1", b"0x10", b"5", b"5:1e3", b"5:5.5", b"1:2:3:4:5"]


class Batches(History):
    """A history whose steps are script calls of many bills."""

    def __init__(self, seed: int, server: Server) -> None:
        super().__init__(seed, server.url)
        random = self.random
        mostly = ["gcra", "gcra", "gcra", "leaky-bucket-queue", None]
        self.limits = [a_limit(random, f"l{i}", random.choice(mostly)) for i in range(random.randint(1, 6))]
        self.client = redis_py.Redis(port=server.port)
        self.foreign: dict[bytes, bytes] = {}

    def spoil(self) -> None:
        random = self.random
        charge = Charge("n", random.choice(self.limits), random.choice("xyz"), 1)
        key = stored_key(charge)
        self.redis.reset([charge])
        self.exact.reset([charge])
        held = random.choice([*(NO_TATS if form_of(charge.limit).letter == b"g" else NO_COUNTERS), b"list"])
        if held == b"list":
            self.client.rpush(key, b"x")
        else:
            self.client.set(key, held)
        self.foreign[key] = self.client.dump(key)

    def mend(self) -> None:
        for key in self.foreign:
            self.client.delete(key)
        self.foreign.clear()

    def bill(self) -> Bill:
        random: Random = self.random
        limits = [limit for limit in self.limits if random.random() < 0.8] or self.limits[:1]
        random.shuffle(limits)
        key = random.choice("xyz")
        if random.random() < 0.3:
            lease = (
                Lease(random.getrandbits(63) or 1, random.choice([SECOND, DAY, 999])) if random.random() < 0.3 else None
            )
            flexible = random.random() < 0.3
            charges = [
                Charge("n", limit, key, self.costs(limit), lease, flexible and random.random() < 0.8)
                for limit in limits
            ]
            return Bill(charges, commit=random.random() < 0.8)
        costs = [1 if random.random() < 0.7 else max(1, self.costs(limit)) for limit in limits]
        charges = [Charge("n", limit, key, cost) for limit, cost in zip(limits, costs, strict=True)]
        if any(limit.algorithm is Algorithm.CONCURRENCY for limit in limits):
            return Bill(charges)
        stored = [stored_key(charge) for charge in charges]
        return Bill(Packed("n", limits, [key] * len(limits), costs, stored, [form_of(limit) for limit in limits]))

    def batch(self) -> None:
        bills = [self.bill() for _ in range(self.random.choice([1, 1, 2, 3, 5, 12, 40]))]
        ours = self.redis._drive(decide(self.redis.topology, bills, self.redis.now, clock=True))
        waits = [0]
        for number, (bill, decided) in enumerate(zip(bills, ours, strict=True)):
            where = self.where([number, *bill.charges, decided])
            spoilt = [key for key in map(stored_key, bill.charges) if key in self.foreign]
            if spoilt:
                assert isinstance(decided, StoreUnusable), where
                assert any(key.decode() in str(decided) for key in spoilt), where
                continue
            assert isinstance(decided, Decided), where
            exact = self.exact.advance(bill.charges, commit=bill.commit)
            assert decided.answer == exact, where
            assert decided.allowed == exact.allowed, where
            waits += [getattr(outcome, "retry_after", 0) or outcome.replenish_after for outcome in exact.outcomes]
        assert {key: self.client.dump(key) for key in self.foreign} == self.foreign, self.where([])
        self.hint = -(-self.random.choice(waits) // 1000) * 1000

    def step(self, *, back: bool) -> None:
        self.number += 1
        self.move(back=back)
        chance = self.random.random()
        if chance < 0.1:
            self.spoil()
        elif chance < 0.15:
            self.mend()
        elif chance < 0.3 and not self.foreign:
            self.change()
        else:
            self.batch()

    def close(self) -> None:
        super().close()
        self.client.close()


@pytest.mark.parametrize("block", range(4))
def test_bills_of_one_call_are_decided_one_after_the_other(server: Server, block: int) -> None:
    """Each is told what the core says after those before it; a key that is none of ours is left, and with it its bill's others."""
    for seed in range(block * 8, block * 8 + 8):
        server.flush()
        history = Batches(seed, server)
        try:
            for _ in range(30):
                history.step(back=seed % 2 == 0)
        except AssertionError as error:
            raise AssertionError(f"history {seed}: {error}") from error
        finally:
            history.close()


def test_instants_are_written_as_whole_numbers(server: Server) -> None:
    """What the scripts format with %d or %.0f, whichever it is there, is exact for every whole number below 2**53."""
    random = Random(1)
    numbers = [0, 1, 2**31, 2**32, 2**52, 2**52 + 1, 2**53 - 1, *(random.getrandbits(53) for _ in range(500))]
    client = redis_py.Redis(port=server.port)
    source = """
        local whole = string.format('%d', 4503599627370496) == '4503599627370496' and '%d' or '%.0f'
        local told = {}
        for i, number in ipairs(ARGV) do told[i] = string.format(whole, tonumber(number)) end
        return told
    """
    assert [int(told) for told in client.eval(source, 0, *numbers)] == numbers
    client.close()
