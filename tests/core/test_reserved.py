"""Giving units back on a GCRA key: as if they had never been charged, and never more than that."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.gcra import Gcra
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Refused
from headway.core.reserved import (
    NOTHING_YET,
    GivenBack,
    Ledger,
    Reserved,
    after_arrival,
    give_back,
    pack,
    unpack,
)
from headway.core.rule import State

FOR_EVER = 10**12
MANY = settings.default.max_examples if settings.default else 100


@dataclass
class Key:
    """One key under one rule after another, and beside it the list of all that was admitted: what it would be as if.

    ``charges`` holds (instant, ns of the charge's emission intervals) and is all the model knows.
    """

    rule: Gcra
    now: int = 1_000
    state: State = None
    charges: list[list[Fraction]] = field(default_factory=list)
    tokens: int = 0

    def hit(self, cost: int, ttl: int | None = None) -> tuple[Gcra, Receipt, int] | None:
        """Charge; what is needed to give it back, or None when refused."""
        self.tokens += 1
        lease = None if ttl is None else Lease(self.tokens, ttl)
        after, outcome = self.rule.decide(self.state, self.now, cost, lease)
        if not isinstance(outcome, Admitted):
            assert after is self.state
            return None
        self.state = after
        self.charges.append([Fraction(self.now), Fraction(cost * self.rule.interval, self.rule.scale)])
        receipt = Receipt(self.now, cost, 0 if lease is None else lease.token, outcome)
        return self.rule, receipt, len(self.charges) - 1

    def give_back(self, charged: tuple[Gcra, Receipt, int], units: int) -> None:
        rule, receipt, index = charged
        self.state = rule.give_back(self.state, self.now, units, receipt)
        self.charges[index][1] -= Fraction(units * rule.interval, rule.scale)

    def owes(self) -> Fraction:
        """Ns until the key is as if unused, by its state."""
        return Fraction(self.rule._owed(self.state, self.now * self.rule.scale)[0], self.rule.scale)

    def would_owe(self) -> Fraction:
        """The same, had nothing been charged but what was not given back: idle time earns no credit."""
        owed, seen = Fraction(0), Fraction(0)
        for at, charged in self.charges:
            owed, seen = max(Fraction(0), owed - (at - seen)) + charged, at
        return max(Fraction(0), owed - (self.now - seen))


rules = st.builds(
    lambda interval, burst, scale: Gcra(interval, interval * burst, scale, slack=FOR_EVER),
    st.sampled_from([1, 2, 7, 10, 100]),
    st.integers(1, 6),
    st.sampled_from([1, 1, 3, 7]),
)
slower = rules.filter(lambda rule: rule.interval >= rule.scale)
"""Rules of at most one unit a nanosecond: of faster ones a plain hit's refund may leave up to a nanosecond owed."""

moves = st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 40), st.integers(0, 700))
steps = st.lists(
    st.tuples(
        st.sampled_from(["hit", "hit", "reserve", "reserve", "give", "give", "quota", "forget"]),
        moves,
        st.integers(0, 50),
    ),
    max_size=16,
)


@given(st.lists(rules, min_size=1, max_size=3), steps)
def test_no_giving_back_ever_lifts_a_key_above_as_if(several: list[Gcra], history: list[tuple[str, int, int]]) -> None:
    """Hits, reservations, refunds, cancels, partial commits, expiries, quotas changed as is: never owed less than as if.

    A store may forget the key whenever the rule says so.

    A quota that is changed may cost or gain a nanosecond: times are told in whole ones.
    """
    key = Key(several[0])
    open_: list[tuple[Gcra, Receipt, int]] = []
    for kind, move, number in history:
        key.now += move
        if kind == "quota":
            key.rule = several[number % len(several)]
        elif kind == "forget":
            if key.state is not None and key.rule.expires_at(key.state) <= key.now:
                key.state = None
        elif kind in ("hit", "reserve"):
            ttl = [1, 5, FOR_EVER, FOR_EVER][number % 4] if kind == "reserve" else None
            charged = key.hit(1 + number % key.rule.burst, ttl)
            if charged:
                open_.append(charged)
        elif open_:
            rule, receipt, index = open_.pop(number % len(open_))
            units = number % (receipt.cost + 1) if receipt.token else receipt.cost
            lost = receipt.token and key.now >= receipt.at + [1, 5, FOR_EVER, FOR_EVER][0]
            before = key.state
            key.give_back((rule, receipt, index), units)
            if lost and key.state is before:  # expired: it stays charged
                key.charges[index][1] += Fraction(units * rule.interval, rule.scale)
        assert key.owes() >= key.would_owe() - (len(several) - 1)


shares = st.one_of(st.just(0.0), st.floats(0, 0.5), st.floats(0, 1.5))
"""Moves of the clock as shares of a full burst's recovery: so that keys idle now and then, and not always."""

arrivals = st.lists(st.tuples(shares, st.integers(1, 3)), min_size=1, max_size=5)


def pass_time(key: Key, share: float) -> None:
    key.now += int(key.rule.depth / key.rule.scale * share)


@given(rules, st.just([]) | arrivals, st.integers(1, 4), arrivals, shares, st.integers(0, 4))
@settings(max_examples=3 * MANY)
def test_a_single_reservation_is_given_back_exactly(
    rule: Gcra, before: list[tuple[float, int]], cost: int, after: list[tuple[float, int]], later: float, kept: int
) -> None:
    """Cancelled, or committed for less, among any hits: the key owes exactly what it would without those units."""
    key = Key(rule)
    for share, units in before:
        pass_time(key, share)
        key.hit(min(units, rule.burst))
    reserved = key.hit(min(cost, rule.burst), FOR_EVER)
    for share, units in after:
        pass_time(key, share)
        key.hit(min(units, rule.burst))
    pass_time(key, later)
    if reserved:
        key.give_back(reserved, max(0, reserved[1].cost - kept))
    assert key.owes() == key.would_owe()


@given(rules, st.lists(st.tuples(st.booleans(), shares, st.integers(1, 3)), min_size=2, max_size=8), st.data())
@settings(max_examples=3 * MANY)
def test_several_reservations_give_back_no_more_than_as_if(
    rule: Gcra, history: list[tuple[bool, float, int]], data: st.DataObject
) -> None:
    """Open at once, among hits, settled in any order and for any part, with more hits between: never owed less than as if."""
    key, open_ = Key(rule), []
    for reserve, share, units in history:
        pass_time(key, share)
        made = key.hit(min(units, rule.burst), FOR_EVER if reserve else None)
        if made and reserve:
            open_.append(made)
    for made in data.draw(st.permutations(open_)):
        pass_time(key, data.draw(shares))
        if data.draw(st.booleans()):
            key.hit(1)
        key.give_back(made, data.draw(st.sampled_from([made[1].cost, made[1].cost, 1])))
        assert key.owes() >= key.would_owe()


@given(rules, st.lists(st.integers(1, 3), min_size=1, max_size=5), st.data())
def test_reservations_of_one_instant_are_given_back_exactly_in_any_order(
    rule: Gcra, costs: list[int], data: st.DataObject
) -> None:
    """Nothing came between, so each gives back all of its units, however many are open."""
    key = Key(rule)
    open_ = [made for cost in costs if (made := key.hit(min(cost, rule.burst), FOR_EVER))]
    for made in data.draw(st.permutations(open_)):
        key.give_back(made, made[1].cost)
        assert key.owes() == key.would_owe()


@given(
    rules.map(lambda rule: Gcra(rule.interval * 7, rule.depth * 7, rule.scale, slack=FOR_EVER)),
    st.lists(st.integers(1, 3), max_size=6),
    st.randoms(use_true_random=False),
    st.integers(0, 6),
)
def test_refunds_at_the_same_instant_leave_the_key_unused(
    rule: Gcra, costs: list[int], random: object, before: int
) -> None:
    """Whatever their order, once everything charged at an instant is given back, what was owed before it is owed."""
    key = Key(rule)
    if key.hit(min(before, rule.burst)):
        key.now += rule.interval // rule.scale // 2
    charged = [made for cost in costs if (made := key.hit(min(cost, rule.burst)))]
    random.shuffle(charged)  # type: ignore[attr-defined]  # hypothesis gives a Random
    for made in charged:
        key.give_back(made, made[1].cost)
        assert key.owes() == key.would_owe()


@given(slower, st.lists(st.tuples(st.integers(1, 3), moves), max_size=6), st.randoms(use_true_random=False))
def test_refunds_of_several_instants_never_owe_more_than_before(
    rule: Gcra, hits: list[tuple[int, int]], random: object
) -> None:
    """The newest first leave nothing owed; in any order nobody gets more back than was charged, though parts may stay owed."""
    key, other = Key(rule), Key(rule)
    for one in (key, other):
        charged = []
        for cost, move in hits:
            one.now += move
            charged += [made] if (made := one.hit(min(cost, rule.burst))) else []
        if one is key:
            for made in reversed(charged):
                one.give_back(made, made[1].cost)
            assert one.owes() == 0
            continue
        random.shuffle(charged)  # type: ignore[attr-defined]  # hypothesis gives a Random
        for made in charged:
            before = one.owes()
            one.give_back(made, made[1].cost)
            assert max(0, before - made[1].cost * rule.interval) <= one.owes() <= before
            assert one.owes() >= one.would_owe()


@given(slower, st.integers(1, 6), moves)
def test_a_lone_refund_is_exact(rule: Gcra, cost: int, later: int) -> None:
    """A hit with nothing after it is given back exactly: what time has not paid of it."""
    key = Key(rule)
    key.hit(rule.burst)
    key.now += later
    charged = key.hit(min(cost, rule.burst))
    key.now += later // 2
    if charged:
        key.give_back(charged, charged[1].cost)
    assert key.owes() == key.would_owe()


def test_a_refund_of_two_thirds_of_a_second_is_no_nanosecond_short() -> None:
    """At 3 per second times are told in whole nanoseconds, rounded up; a refund still brings all three units back."""
    third = Gcra(10**9, 3 * 10**9, 3)
    for costs in ((1,), (2,), (3,), (2, 1), (1, 1, 1), (1, 2)):
        key = Key(third)
        charged = [made for cost in costs if (made := key.hit(cost))]
        for made in charged:
            key.give_back(made, made[1].cost)
        assert third.decide(key.state, key.now, 0)[1] == Admitted(3, 0, 0)


def test_records_between_reservations_keep_the_least_owed() -> None:
    """Each keeps the minimum up to the next one's arrival; giving one back lowers the later ones and hands its own on."""
    first, second, third = Reserved(1, 20, 50, 99), Reserved(2, 10, 40, 99), Reserved(3, 10, 70, 99)
    open_ = [first, second, third]
    assert give_back(open_, 1, 2, 2) == (20, [Reserved(2, 10, 20, 99), Reserved(3, 10, 50, 99)])
    assert give_back(open_, 2, 1, 1) == (10, [Reserved(1, 20, 30, 99), Reserved(3, 10, 60, 99)])
    assert give_back(open_, 3, 1, 1) == (10, [first, Reserved(2, 10, 40, 99)])
    assert give_back(open_, 1, 1, 2) == (10, [Reserved(2, 10, 30, 99), Reserved(3, 10, 60, 99)])
    assert give_back(open_, 4, 1, 1) is None
    low = [first, Reserved(2, 10, 40, 99), Reserved(3, 10, 5, 99)]
    assert give_back(low, 1, 2, 2) == (5, [Reserved(2, 10, 20, 99), Reserved(3, 10, 0, 99)])
    assert give_back(low, 3, 1, 1) == (5, [first, Reserved(2, 10, 0, 99)])


def test_an_arrival_touches_the_latest_record_only() -> None:
    """What it found owed is the latest one's minimum, if it is the least."""
    records = [Reserved(1, 20, 50, 99), Reserved(2, 10, 40, 99), Reserved(3, 10, 30, 99)]
    assert after_arrival(records, 20) == [*records[:2], Reserved(3, 10, 20, 99)]
    assert after_arrival(records, 31) == records
    assert after_arrival([], 20) == []


def test_a_charge_as_old_as_the_oldest_given_back_is_not_moved() -> None:
    """Only what was charged on top of it lies lower now, and only what was charged before it was given back."""
    ledger = Ledger(GivenBack(5, 10, 100, 200), [])
    assert [ledger.ended(5, tat, 0) for tat in (99, 100, 101)] == [99, 100, 91]
    assert ledger.ended(6, 101, 0) == 101
    assert ledger.moved == 10
    assert Ledger(None, []).ended(5, 101, 0) == 101
    assert Ledger(None, []).moved == 0
    assert ledger.after(7, 3, 90, 150) == Ledger(GivenBack(7, 13, 90, 200), [])
    assert ledger.after(7, 3, 110, 250) == Ledger(GivenBack(7, 13, 100, 250), [])
    assert Ledger(None, []).after(7, 3, 90, 150) == Ledger(GivenBack(7, 3, 90, 150), [])


def test_a_charge_is_never_moved_below_where_an_unused_key_s_would_be() -> None:
    """What was given back from under it cannot have been more than it stood upon; unless nothing is to be given back."""
    ledger = Ledger(GivenBack(5, 10, 100, 200), [])
    assert [ledger.ended(5, 105, least) for least in (0, 94, 95, 96, 104, 105, 106)] == [95, 95, 95, 96, 104, 105, 105]
    assert ledger.ended(5, 100, 999) == 100
    assert ledger.ended(6, 105, 0) == 105
    settled = Ledger(GivenBack(5, NOTHING_YET, 0, 200), [])
    assert settled.ended(5, 105, 105) == 105 - NOTHING_YET


@pytest.mark.parametrize("scale", [1, 3])
@pytest.mark.parametrize("order", [(2, 0, 1, 3), (0, 2, 1, 3), (1, 3, 0, 2)])
def test_the_middle_of_several_refunds_finds_its_whole_charge(scale: int, order: tuple[int, ...]) -> None:
    """What was given back above it and below it is not taken off twice."""
    key = Key(Gcra(30 * scale + 1, 10 * (30 * scale + 1), scale))
    made = [key.hit(cost) for cost in (1, 2, 3, 4)]
    for index in order:
        charged = made[index]
        assert charged
        key.give_back(charged, charged[1].cost)
        assert key.owes() == key.would_owe()


def test_two_refunds_with_an_idle_time_between_make_no_burst() -> None:
    """After the first refund the key idles; what the second gives back must not be credit for that idle time."""
    key = Key(Gcra(10, 20))
    first, second = key.hit(1), key.hit(1)
    assert first
    assert second
    key.give_back(first, 1)
    key.now += 12
    assert key.hit(1)
    key.give_back(second, 1)
    assert key.owes() == key.would_owe() == 10


def test_a_refund_under_an_older_quota_keeps_what_the_newer_one_is_owed() -> None:
    """A decision made under "1 per 1 s" is refunded when the key owes an hour under the new quota: the hour stays."""
    second = 10**9
    key = Key(Gcra(second, second))
    charged = key.hit(1)
    assert charged
    key.rule = Gcra(60 * second, 6_000 * second)
    assert key.hit(50)
    key.give_back(charged, 1)
    assert key.owes() == 3_000 * second
    taken = charged[0].take(key.state, key.now, 3)
    assert key.rule._owed(taken, key.now)[0] == 3_003 * second


def test_a_refund_after_a_reset_does_not_touch_later_hits() -> None:
    """The charge is not in the state any more: nothing is given back."""
    key = Key(Gcra(10, 50))
    charged = key.hit(5)
    assert charged
    key.state = None
    key.now += 3
    assert key.hit(2)
    before = key.state
    assert charged[0].give_back(before, key.now, 5, charged[1]) is before


def test_a_proportional_change_keeps_what_was_charged_before() -> None:
    """The old decisions' times mean nothing under the new quota, so refunding and settling them gives nothing back."""
    key = Key(Gcra(10, 50))
    hit, held = key.hit(2), key.hit(2, FOR_EVER)
    assert hit
    assert held
    old, new = key.rule, Gcra(1, 5)
    state = new.scaled(key.state, key.now, old)
    assert new._owed(state, key.now)[0] == 4
    for rule, receipt, _ in (hit, held):
        state = rule.give_back(state, key.now, 2, receipt)
    assert new._owed(state, key.now)[0] == 4
    state, outcome = new.decide(state, key.now + 4, 1)
    assert outcome == Admitted(4, 1, 1)


def test_a_proportional_change_uses_the_same_share_rounded_up() -> None:
    """Two fifths in use are two fifths in use; one third of a burst of 1 is all of it but never more than all."""
    old = Gcra(10, 50)
    state = old.take(None, 0, 2)
    assert Gcra(7, 35).scaled(state, 0, old)[0] == 14
    assert Gcra(7, 7).scaled(old.take(None, 0, 1), 0, old)[0] == 2
    deep = old.take(None, 0, 50)
    assert Gcra(7, 35).scaled(deep, 0, old)[0] == 35


def test_a_settled_reservation_is_settled_once() -> None:
    """The token is gone after the first time, and after its lease has ended."""
    rule = Gcra(10, 50)
    state, outcome = rule.decide(None, 0, 3, Lease(7, 100))
    assert isinstance(outcome, Admitted)
    receipt = Receipt(0, 3, 7, outcome)
    given = rule.give_back(state, 5, 3, receipt)
    assert given == 5, "nothing is owed and nothing remembered"
    assert rule.give_back(given, 5, 3, receipt) is given
    assert rule.give_back(state, 100, 3, receipt) is state
    assert rule.give_back(state, 99, 0, receipt) == 99, "ended without giving anything back"
    assert rule.give_back(None, 0, 3, receipt) is None


def test_debt_is_remembered_beyond_a_full_burst() -> None:
    """An actual cost far above the estimate is owed in full, refused with its true wait, and not taken for dishonest."""
    second = 10**9
    rule = Gcra(second, 5 * second)
    state = rule.take(None, 0, 100)
    state, outcome = rule.decide(state, 0, 1)
    assert outcome == Refused(0, 96 * second, 96 * second, 100 * second)
    state, outcome = rule.decide(state, 96 * second, 1)
    assert outcome == Admitted(0, second, 5 * second)
    assert state == 101 * second, "once it is paid nothing but the TAT is kept"


def test_debt_has_a_bound() -> None:
    """A century beyond a full burst is as much as a key can owe, so instants fit 64 bits."""
    rule = Gcra(10**9, 10**9)
    state = rule.take(None, 0, 10**30)
    assert rule.dump(rule.take(state, 0, 1)) == rule.dump(state)
    assert rule.expires_at(state) == 100 * 365 * 86_400 * 10**9 + 10**9


def test_a_clock_set_back_cuts_no_debt() -> None:
    """The cap keeps what was charged without asking: burst · T and the debt, and only the dishonest part is cut."""
    second = 10**9
    rule = Gcra(second, 5 * second)
    state = rule.take(None, 1_000 * second, 8)
    state, outcome = rule.decide(state, 500 * second, 1)
    assert outcome.reset_after == 8 * second
    assert rule.decide(state, 500 * second, 0)[1].reset_after == 8 * second


@pytest.mark.parametrize("given_back", [None, GivenBack(5, 6, 7, 100), GivenBack(0, 6, 7, 100)])
def test_a_ledger_comes_back_from_its_numbers(given_back: GivenBack | None) -> None:
    """``unpack`` undoes ``pack``, and forgets what has expired: the low of a forgotten record goes to the one before."""
    records = [Reserved(1, 10, 30, 100), Reserved(2, 10, 20, 50), Reserved(3, 10, NOTHING_YET, 100)]
    ledger = Ledger(given_back, records)
    assert unpack(pack(ledger), 49) == ledger
    assert unpack(pack(ledger), 50) == Ledger(given_back, [Reserved(1, 10, 20, 100), records[2]])
    assert unpack(pack(ledger), 100) == Ledger(None, [])
    assert unpack((), 0) == Ledger(None, [])


def test_a_key_with_an_open_reservation_may_not_be_forgotten_though_it_has_recovered() -> None:
    """Its state says when it may be: when the last lease has expired; a debt charged until then is owed."""
    rule = Gcra(10, 30)
    state, outcome = rule.decide(None, 100, 1, Lease(7, 500))
    assert isinstance(outcome, Admitted)
    assert rule.expires_at(state) == 600
    state, _ = rule.decide(state, 200, 1, Lease(8, 300))
    assert rule.expires_at(state) == 600
    assert rule.expires_at(rule.give_back(state, 300, 0, Receipt(100, 1, 7, outcome))) == 500
    assert rule.expires_at(rule.decide(state, 700, 1)[0]) == 710
    state, _ = rule.decide(state, 210, 1, Lease(9, 5_000))
    assert rule.expires_at(state) == 5_210, "whichever lasts longest"


def test_a_refund_after_an_earlier_one_takes_nothing_of_what_came_after_the_key_had_recovered() -> None:
    """Two charges at once; the first refunded at once, the second when the key may seem recovered: a later one stays."""
    rule = Gcra(10, 40)
    state, first = rule.decide(None, 100, 1)
    state, second = rule.decide(state, 100, 1)
    assert isinstance(first, Admitted)
    assert isinstance(second, Admitted)
    state = rule.give_back(state, 101, 1, Receipt(100, 1, 0, first))
    assert rule.expires_at(state) == 120, (
        "the key owes nothing from 110 on, but the second charge is not paid until 120"
    )
    state, _ = rule.decide(state, 115, 1)
    assert rule.ticks(rule.give_back(state, 115, 1, Receipt(100, 1, 0, second))) == 125


def test_giving_nothing_back_leaves_the_very_object() -> None:
    """Also of a key that has recovered: there is nothing to write."""
    rule = Gcra(10, 30)
    state, outcome = rule.decide(None, 100, 1)
    assert isinstance(outcome, Admitted)
    for now in (100, 500):
        assert rule.give_back(state, now, 0, Receipt(100, 1, 0, outcome)) is state


def test_where_a_charge_ended_is_found_to_the_tick_after_an_earlier_refund() -> None:
    """Receipts tell whole nanoseconds; the ticks between follow from the TAT as it would be without what was given back."""
    rule = Gcra(23, 92, 3)
    state, first = rule.decide(None, 1_000, 2)
    state, second = rule.decide(state, 1_005, 2)
    assert isinstance(first, Admitted)
    assert isinstance(second, Admitted)
    state = rule.give_back(state, 1_006, 2, Receipt(1_000, 2, 0, first))
    state, _ = rule.decide(state, 1_011, 1)
    state = rule.give_back(state, 1_016, 2, Receipt(1_005, 2, 0, second))
    assert state == (3_071, 3, 0, -1_016, 44, 3_046, 1_031)
