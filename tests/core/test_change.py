"""Changes to charges: when they are in time, what they give back, take and renew."""

from __future__ import annotations

import pytest

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Lease, Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.rule import State

TTL = 50
GCRA = Limit("l", "1000000000/s burst 10")  # an emission interval of 1 ns
PLACES = Limit("l", "5 at once for 1 ms")
WINDOW = Limit("l", "5 per 1ms", algorithm="fixed-window")
ATTEMPTS = Limit("l", "1 per 30s burst 3", algorithm="growing-wait")


def charged(limit: Limit, cost: int = 3, *, token: int = 7, at: int = 1_000) -> tuple[State, Charge, Receipt]:
    """A charge with a lease (none for token 0) on an unused key: the state after it, and what is kept of it."""
    lease = Lease(token, TTL) if token else None
    state, outcome = limit.rule.decide(None, at, cost, lease)
    assert isinstance(outcome, Admitted)
    return state, Charge("n", limit, (), cost, lease), Receipt(at, cost, token, outcome)


def test_a_change_without_numbers_only_ends_the_lease() -> None:
    """By default nothing is given back, taken or renewed; the second time it is too late."""
    state, charge, receipt = charged(GCRA)
    after, in_time = Change(charge, receipt).applied(state, 1_001)
    assert (after, in_time) == (1_003, True)
    assert Change(charge, receipt).applied(after, 1_001) == (after, False)


def test_what_is_given_back_and_what_is_taken_are_units() -> None:
    """Less is given back from where the state is, more is added on top of it."""
    state, charge, receipt = charged(GCRA)
    assert Change(charge, receipt, give_back=2).applied(state, 1_001) == (1_001, True)
    assert Change(charge, receipt, take=4).applied(state, 1_001) == (1_007, True)


@pytest.mark.parametrize("limit", [GCRA, WINDOW, ATTEMPTS], ids=lambda limit: limit.algorithm.value)
def test_a_lease_is_in_time_until_the_instant_at_which_it_ends(limit: Limit) -> None:
    """A nanosecond before it is, at its end it is not, and then the state is the very object."""
    state, charge, receipt = charged(limit)
    change = Change(charge, receipt, give_back=1, take=2)
    after, in_time = change.applied(state, 1_000 + TTL - 1)
    assert in_time is True
    assert after is not state
    for now in (1_000 + TTL, 1_000 + TTL + 1):
        kept, in_time = change.applied(state, now)
        assert in_time is False
        assert kept is state


@pytest.mark.parametrize("limit", [GCRA, WINDOW, ATTEMPTS], ids=lambda limit: limit.algorithm.value)
def test_a_refund_without_a_lease_is_always_in_time(limit: Limit) -> None:
    """Also of a key that was forgotten, where it does nothing."""
    state, charge, receipt = charged(limit, token=0)
    after, in_time = Change(charge, receipt, give_back=3).applied(state, 1_000 + TTL)
    assert in_time is True
    assert limit.rule.decide(after, 1_000 + TTL, 0)[1].remaining == limit.quota.burst
    assert Change(charge, receipt, give_back=3).applied(None, 1_000 + TTL) == (None, True)


def test_a_gcra_lease_that_the_state_does_not_know_is_too_late() -> None:
    """After a reset nothing is given back and no debt is charged; a window knows its units by its end, without a lease."""
    _, charge, receipt = charged(GCRA)
    assert Change(charge, receipt, give_back=1, take=5).applied(None, 1_001) == (None, False)
    _, charge, receipt = charged(WINDOW)
    after, in_time = Change(charge, receipt, take=5).applied(None, 1_001)
    assert in_time is True
    assert WINDOW.rule.decide(after, 1_001, 0)[1].remaining == 0


def test_only_places_are_renewed() -> None:
    """A place lasts its whole period from now; for other limits there is nothing to do, and that is in time."""
    state, charge, receipt = charged(PLACES)
    after, in_time = Change(charge, receipt, renew=True).applied(state, 1_500)
    assert (after, in_time) == ((1_001_500, 7, 3), True)
    for limit in (GCRA, WINDOW, ATTEMPTS):
        state, charge, receipt = charged(limit)
        for now in (1_001, 1_000 + TTL):
            kept, in_time = Change(charge, receipt, give_back=3, take=3, renew=True).applied(state, now)
            assert kept is state
            assert in_time is True


def test_a_place_is_in_time_as_long_as_it_is_held() -> None:
    """Its own period counts, not the lease's; in part it is given back as often as something is left; taking means nothing."""
    state, charge, receipt = charged(PLACES)
    after, in_time = Change(charge, receipt, give_back=1, take=5).applied(state, 1_000_999)
    assert (after, in_time) == ((1_001_000, 7, 2), True)
    after, in_time = Change(charge, receipt, give_back=2).applied(after, 1_000_999)
    assert (after, in_time) == (None, True)
    assert Change(charge, receipt, give_back=2).applied(after, 1_000_999) == (None, False)
    kept, in_time = Change(charge, receipt, give_back=3).applied(state, 1_001_000)
    assert kept is state
    assert in_time is False
    kept, in_time = Change(charge, receipt, renew=True).applied(state, 1_001_000)
    assert kept is state
    assert in_time is False


def test_a_blocked_limit_gives_nothing_back_and_takes_nothing() -> None:
    """Whatever it counted before; so also one that counts places."""
    for limit in (Limit("l", "0/s"), Limit("l", "0 at once")):
        receipt = charged(GCRA, token=0)[2]
        change = Change(Charge("n", limit, (), 3), receipt, give_back=3, take=3)
        state = (5, 6, 7)
        kept, in_time = change.applied(state, 1_001)
        assert kept is state
        assert in_time is True
