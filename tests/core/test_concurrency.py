"""Concurrency: leases that are given back, renewed, or expire by themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway import Limit
from headway.core.concurrency import Concurrency
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Refused
from headway.core.rule import CLOCK_SLACK_NS

RULE = Concurrency(3, 100)


def receipt(at: int, cost: int, token: int) -> Receipt:
    return Receipt(at, cost, token, Admitted(0, 0, 0))


def test_leases_are_kept_in_the_order_in_which_they_expire() -> None:
    """(expires, token, units) for each; the earliest says when more is free, the last when all is."""
    state, outcome = RULE.decide(None, 0, 1, Lease(7, 0))
    assert state == (100, 7, 1)
    assert outcome == Admitted(2, 100, 100)
    state, outcome = RULE.decide(state, 30, 2, Lease(5, 0))
    assert state == (100, 7, 1, 130, 5, 2)
    assert outcome == Admitted(0, 70, 100)
    assert RULE.expires_at(state) == 130
    assert RULE.dump(state) == state == RULE.load(state)


def test_a_refusal_s_wait_is_an_upper_bound_and_says_so() -> None:
    """As long as it takes until enough leases have expired, should nobody give one back."""
    state = (100, 7, 1, 130, 5, 2)
    assert RULE.decide(state, 40, 1) == (state, Refused(0, 60, 60, 90, at_most=True))
    assert RULE.decide(state, 40, 2) == (state, Refused(0, 90, 60, 90, at_most=True))
    assert RULE.decide(state, 100, 2) == (state, Refused(1, 30, 30, 30, at_most=True))
    assert RULE.decide(state, 40, 4) == (state, Never(3, 0, 60, 90))


def test_a_crashed_holder_frees_its_place() -> None:
    """A lease that nobody gives back is gone exactly at its end, not a nanosecond earlier."""
    state = (100, 7, 3)
    assert isinstance(RULE.decide(state, 99, 1)[1], Refused)
    after, outcome = RULE.decide(state, 100, 1, Lease(8, 0))
    assert after == (200, 8, 1)
    assert outcome == Admitted(2, 100, 100)


def test_giving_back_frees_at_once_and_only_once() -> None:
    """The lease of that token ends, or becomes smaller; one that is not held changes nothing."""
    state = (100, 7, 1, 130, 5, 2)
    assert RULE.give_back(state, 50, 2, receipt(30, 2, 5)) == (100, 7, 1)
    assert RULE.give_back(state, 50, 1, receipt(30, 2, 5)) == (100, 7, 1, 130, 5, 1)
    assert RULE.give_back((100, 7, 1), 50, 1, receipt(0, 1, 7)) is None, "nothing is left to remember"
    assert RULE.give_back(state, 50, 1, receipt(0, 1, 6)) is state
    assert RULE.give_back(state, 100, 1, receipt(0, 1, 7)) is state, "it has expired"
    assert RULE.give_back(None, 50, 1, receipt(0, 1, 7)) is None


def test_without_a_lease_units_are_held_until_they_expire_and_refunded_by_their_age() -> None:
    """A plain charge has no token: a refund ends one that was charged at the same instant, and no lease of another."""
    state, _ = RULE.decide(None, 0, 1)
    assert state == (100, 0, 1)
    state, _ = RULE.decide(state, 10, 1)
    assert RULE.give_back(state, 20, 1, receipt(10, 1, 0)) == (100, 0, 1)
    assert RULE.give_back(state, 20, 1, receipt(11, 1, 0)) is state
    assert RULE.give_back((100, 7, 1), 20, 1, receipt(0, 1, 0)) == (100, 7, 1)


def test_a_renewed_lease_lasts_a_whole_time_from_now() -> None:
    """It moves to where it now expires; one that has expired, or was never there, cannot be renewed."""
    state = (100, 7, 1, 130, 5, 2)
    assert RULE.renew(state, 60, 7) == (130, 5, 2, 160, 7, 1)
    assert RULE.renew(state, 100, 7) is state
    assert RULE.renew(state, 60, 9) is state
    assert RULE.renew((100, 0, 1), 60, 0) == (100, 0, 1), "what has no token is nobody's to renew"


def test_a_longer_time_that_was_set_since_is_not_cut_by_an_older_release() -> None:
    """Giving back, renewing and adding under "for 100 ns" leave leases alone that were taken "for one hour"."""
    hour = 3600 * 10**9
    state = (100, 7, 1, hour, 5, 2)
    assert RULE.give_back(state, 50, 1, receipt(0, 1, 7)) == (hour, 5, 2)
    assert RULE.renew(state, 50, 7) == (150, 7, 1, hour, 5, 2)
    assert RULE.take(state, 50, 4) == (100, 7, 1, 150, 0, 4, hour, 5, 2)
    assert RULE.take(None, 50, 4) == (150, 0, 4)


def test_a_clock_set_back_far_holds_nothing_for_ever() -> None:
    """A lease that lasts beyond the slack is cut to a whole time from now, and that is kept on a refusal."""
    late = 100 + CLOCK_SLACK_NS
    state = (late + 50, 7, 3)
    assert RULE.decide(state, 50, 1)[0] is state
    assert RULE.decide(state, 49, 1) == ((149, 7, 3), Refused(0, 100, 100, 100, at_most=True))
    assert RULE.decide(state, 49, 0)[0] is state


def test_a_lowered_count_takes_nothing_away() -> None:
    """What is held is held; it only takes longer until somebody else may come."""
    one = Concurrency(1, 100)
    state = (100, 7, 1, 130, 5, 2)
    assert one.decide(state, 40, 1) == (state, Refused(0, 90, 90, 90, at_most=True))
    assert one.scaled(state, 40, RULE) == state
    assert one.scaled(state, 110, RULE) == (130, 5, 2)
    assert one.scaled(state, 130, RULE) is None


def test_a_line_clears_as_leases_expire() -> None:
    """The time until that many more were admitted, each held for its whole time."""
    state = (100, 7, 1, 130, 5, 2)
    assert RULE.clears_after(state, 40, 0) == 0
    assert RULE.clears_after(None, 0, 3) == 0
    assert RULE.clears_after(None, 0, 4) == 100
    assert RULE.clears_after((100, 7, 1, 130, 5, 4), 40, 1) == 90, "more are held than the count allows now"
    assert RULE.clears_after(state, 40, 1) == 60
    assert RULE.clears_after(state, 40, 3) == 90
    assert RULE.clears_after(state, 40, 4) == 160
    assert RULE.clears_after(state, 40, 7) == 260


moves = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(["take", "give", "renew"]), st.integers(1, 3)), max_size=20
)


@given(moves)
def test_a_told_wait_is_enough_if_nobody_gives_back(history: list[tuple[int, str, int]]) -> None:
    """At the bound the cost is admitted, whatever leases there are; never more than the count is held."""
    state, now, leases = None, 0, []
    for number, (move, kind, cost) in enumerate(history, start=1):
        now += move
        if kind == "take" or not leases:
            state, outcome = RULE.decide(state, now, cost, Lease(number, 0))
            if isinstance(outcome, Admitted):
                leases.append(receipt(now, cost, number))
            elif isinstance(outcome, Refused):
                assert isinstance(RULE.decide(state, now + outcome.retry_after, cost)[1], Admitted)
        elif kind == "give":
            held = leases.pop(cost % len(leases))
            state = RULE.give_back(state, now, held.cost, held)
        else:
            state = RULE.renew(state, now, leases[cost % len(leases)].token)
        held_now = sum(units for at, units in zip((state or ())[::3], (state or ())[2::3], strict=True) if at > now)
        assert held_now <= RULE.burst


def test_a_quota_says_how_many_at_once_and_for_how_long() -> None:
    """``"3 at once for 60 s"`` is a concurrency limit, of a minute at most unless said otherwise."""
    assert Limit("slots", "3 at once for 90 s").rule == Concurrency(3, 90 * 10**9)
    assert Limit("slots", "3 at once").rule == Concurrency(3, 60 * 10**9)


def test_a_line_that_fits_waits_for_no_lease() -> None:
    """Up to the last free place; the next one waits for the first lease."""
    assert [RULE.clears_after((100, 7, 1), 40, units) for units in (1, 2, 3)] == [0, 0, 60]


def test_a_key_may_be_forgotten_with_its_last_lease() -> None:
    """However many there are; one without any, at once."""
    assert RULE.expires_at((100, 7, 1)) == 100
    assert RULE.expires_at((100, 7, 1, 110, 8, 1, 130, 9, 1)) == 130
    assert RULE.expires_at(()) == 0


def test_what_is_held_is_told_whole() -> None:
    """Unused nothing is waited for; else until the first lease ends for one more place, until the last for all."""
    assert RULE.decide(None, 40, 0)[1] == Admitted(3, 0, 0)
    state = (100, 2**62, 1, 130, 2**63 - 1, 1)
    assert RULE.decide(state, 40, 0) == (state, Admitted(1, 60, 90))
    assert RULE.decide(state, 40, 1)[1] == Admitted(0, 60, 100)
    assert RULE.decide(state, 100, 0)[1] == Admitted(2, 30, 30)


def test_only_leases_beyond_the_slack_are_cut() -> None:
    """After a clock that went back far the honest ones keep their times, to the nanosecond."""
    edge = 40 + 100 + CLOCK_SLACK_NS
    kept, outcome = RULE.decide((120, 7, 1, edge, 8, 1, edge + 1, 9, 1), 40, 1)
    assert kept == (120, 7, 1, 140, 9, 1, edge, 8, 1)
    assert outcome == Refused(0, 80, 80, edge - 40, at_most=True)
    honest = (120, 7, 1, edge, 8, 2)
    assert RULE.decide(honest, 40, 1)[0] is honest
