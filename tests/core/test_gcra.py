"""GCRA's edges: equality, the cap on what a clock can have left behind, states of other quotas, states as numbers."""

from __future__ import annotations

import pytest

from headway.core.gcra import Gcra
from headway.core.lease import Lease, Receipt
from headway.core.outcome import Admitted, Never, Refused
from headway.core.quota import MAX_COUNT, MAX_RECOVERY_NS, SECOND, Quota
from headway.core.rule import CLOCK_SLACK_NS

TWO = Gcra.of(Quota.parse("2 per 10s"))
THIRD = Gcra.of(Quota.parse("3/s"))


def test_the_interval_is_kept_as_a_fraction() -> None:
    """T is interval / scale nanoseconds, in lowest terms; whole ones have scale 1."""
    assert (TWO.interval, TWO.depth, TWO.scale) == (5 * SECOND, 10 * SECOND, 1)
    assert (THIRD.interval, THIRD.depth, THIRD.scale) == (SECOND, 3 * SECOND, 3)
    eleven = Gcra.of(Quota.parse("11/day"))
    assert (eleven.interval, eleven.scale) == (86_400 * SECOND, 11)
    assert Gcra.of(Quota.parse("22/day burst 5")).interval * 2 == eleven.interval * 1
    assert [type(number) for number in (eleven.interval, eleven.depth, eleven.scale)] == [int] * 3
    assert Gcra.of(Quota(MAX_COUNT, 1)).burst == MAX_COUNT
    assert Gcra.of(Quota(1, MAX_RECOVERY_NS)).burst == 1


@pytest.mark.parametrize("beyond", [-SECOND, -1, 0])
def test_a_tat_within_the_slack_is_honest(beyond: int) -> None:
    """Up to ten seconds beyond a full burst's debt the state is kept, and the wait is what it says."""
    state = TWO.depth + CLOCK_SLACK_NS + beyond
    same, outcome = TWO.decide(state, 0, 1)
    assert same is state
    assert outcome == Refused(0, state - 5 * SECOND, state - 5 * SECOND, state)


@pytest.mark.parametrize("beyond", [1, 2, SECOND, 10**18])
def test_a_tat_beyond_the_slack_is_capped_and_the_cap_is_kept_on_refusal(beyond: int) -> None:
    """One nanosecond more cannot be honest: it owes a full burst, and every refused or never cost says so in the state."""
    state = TWO.depth + CLOCK_SLACK_NS + beyond
    assert TWO.decide(state, 0, 1) == (TWO.depth, Refused(0, 5 * SECOND, 5 * SECOND, 10 * SECOND))
    assert TWO.decide(state, 0, 3) == (TWO.depth, Never(2, 0, 5 * SECOND, 10 * SECOND))
    looked, outcome = TWO.decide(state, 0, 0)
    assert looked is state, "a look writes nothing"
    assert outcome == Admitted(0, 5 * SECOND, 10 * SECOND), "and tells what a hit would find"


def test_the_cap_counts_in_the_rules_own_ticks() -> None:
    """Where T is no whole number of nanoseconds the slack is still ten seconds."""
    honest = (THIRD.depth + CLOCK_SLACK_NS * 3, 3)
    assert THIRD.decide(honest, 0, 1)[0] is honest
    assert THIRD.decide((honest[0] + 1, 3), 0, 1)[0] == (THIRD.depth, 3)


def test_a_state_of_another_quota_is_converted_never_in_the_callers_favour() -> None:
    """Seconds stay seconds: the TAT is the same instant, rounded up to the new quota's ticks."""
    sevenths = Gcra.of(Quota.parse("7/s burst 1"))
    state, _ = sevenths.decide(None, 0, 1)
    assert THIRD.ticks(state) == 428_571_429  # type: ignore[arg-type]  # 3/7 of a second's thirds, rounded up
    assert THIRD.decide(state, 0, 0)[1].reset_after == 142_857_143
    assert TWO.decide(state, 0, 0)[1].reset_after == 142_857_143
    whole, _ = TWO.decide(None, 0, 1)
    assert THIRD.decide(whole, 0, 0)[1].reset_after == 5 * SECOND


def test_states_are_one_int_or_two() -> None:
    """Whole-nanosecond quotas keep one int a key; others the ticks and how many make a nanosecond."""
    assert TWO.decide(None, 7, 1)[0] == 5 * SECOND + 7
    assert THIRD.decide(None, 7, 1)[0] == (SECOND + 21, 3)
    for rule in (TWO, THIRD):
        state, _ = rule.decide(None, 7, 1)
        assert rule.load(rule.dump(state)) == state  # type: ignore[arg-type]  # it was admitted
    assert THIRD.expires_at((10, 3)) == 4, "rounded up: never forgotten early"
    assert (THIRD.dump((10, 3)), THIRD.dump((10, 3, 5)), TWO.dump(10)) == ((10, 3), (10, 3, 5), (10, 1))


def test_replenish_and_reset_are_different_things() -> None:
    """With three of five spent, one more can be spent soon, and all of them only later."""
    five = Gcra.of(Quota.parse("5 per 10s"))
    state, outcome = five.decide(None, 0, 3)
    assert outcome == Admitted(2, 2 * SECOND, 6 * SECOND)
    assert five.decide(state, SECOND, 0)[1] == Admitted(2, SECOND, 5 * SECOND)
    assert five.decide(state, SECOND, 4)[1] == Refused(2, 3 * SECOND, SECOND, 5 * SECOND)
    assert five.decide(None, 0, 0)[1] == Admitted(5, 0, 0)


def test_a_queue_clears_one_interval_a_unit_once_the_burst_is_gone() -> None:
    """Units that fit wait for nothing; each further one for its own interval, rounded up; what is owed comes first."""
    assert [TWO.clears_after(None, 7, units) for units in (0, 1, 2, 3, 5)] == [0, 0, 0, 5 * SECOND, 15 * SECOND]
    state, _ = TWO.decide(None, 7, 1)
    assert [TWO.clears_after(state, 7, units) for units in (0, 1, 2)] == [0, 0, 5 * SECOND]
    assert TWO.clears_after(state, SECOND + 7, 2) == 4 * SECOND
    third = [THIRD.clears_after(None, 7, units) for units in (3, 4, 5, 6)]
    assert third == [0, 333_333_334, 666_666_667, SECOND], "rounded up, never added up from what was rounded"
    assert THIRD.clears_after(THIRD.decide(None, 7, 1)[0], 7, 3) == 333_333_334
    assert TWO.clears_after(10**18, 7, 1) == 5 * SECOND, "a state that is not honest counts as its cap"


def test_debt_is_added_to_what_is_owed_up_to_a_century() -> None:
    """Without asking; what is more than a full burst is remembered as debt, so the cap on clocks leaves it alone."""
    assert TWO.take(None, 7, 1) == 5 * SECOND + 7
    assert TWO.take(None, 7, 2) == 10 * SECOND + 7, "a full burst is no debt"
    assert TWO.take(3 * SECOND, 2 * SECOND, 1) == 8 * SECOND
    assert TWO.take(SECOND, 2 * SECOND, 1) == 7 * SECOND, "what has recovered earns nothing"
    assert TWO.take(None, 7, 5) == (25 * SECOND + 7, 1, 15 * SECOND)
    assert TWO.decide((25 * SECOND + 7, 1, 15 * SECOND), 7, 1)[1] == Refused(0, 20 * SECOND, 20 * SECOND, 25 * SECOND)
    most = TWO.take(None, 7, 10**18)
    assert most == (10 * SECOND + MAX_RECOVERY_NS + 7, 1, MAX_RECOVERY_NS)
    assert TWO.take(most, 7, 10**18) == most
    assert TWO.take(most, 8, 1) == (most[0] + 1, 1, MAX_RECOVERY_NS), "it never becomes more than that"
    assert THIRD.take(None, 7, 4) == (4 * SECOND + 21, 3, SECOND)
    thirds = THIRD.take(None, 7, 10**18)
    assert thirds == (3 * SECOND + 3 * MAX_RECOVERY_NS + 21, 3, 3 * MAX_RECOVERY_NS)
    far = 10**20
    assert TWO.take(far, 7, 1) == (far, 1, far - 7 - 10 * SECOND), "a state that is beyond it stays where it is"


def test_a_debt_is_honest_and_what_lies_beyond_it_is_not() -> None:
    """The cap on a clock that went back leaves debts: a full burst and the debt, to the nanosecond."""
    debt = 15 * SECOND
    honest = (TWO.depth + debt + CLOCK_SLACK_NS, 1, debt)
    assert TWO.decide(honest, 0, 1)[0] is honest
    beyond = (honest[0] + 1, 1, debt)
    assert TWO.decide(beyond, 0, 1) == (
        (TWO.depth + debt, 1, debt),
        Refused(0, 20 * SECOND, 20 * SECOND, 25 * SECOND),
    )
    thirds = (THIRD.depth + 3 * debt + 3 * CLOCK_SLACK_NS, 3, 3 * debt)
    assert THIRD.decide(thirds, 0, 1)[0] is thirds
    assert THIRD.decide((thirds[0] + 1, 3, 3 * debt), 0, 1)[0] == (THIRD.depth + 3 * debt, 3, 3 * debt)


def test_the_same_share_of_another_burst_is_in_use_after_a_proportional_change() -> None:
    """Rounded up, never more than a full burst, whatever the units of time; refunds of what came before give nothing back."""
    five = Gcra.of(Quota.parse("5 per 10s"))
    state, outcome = five.decide(None, 7, 2)
    assert isinstance(outcome, Admitted)
    scaled = TWO.scaled(state, 7, five)  # type: ignore[arg-type]  # it was admitted
    assert TWO.ticks(scaled) == 4 * SECOND + 7
    assert TWO.give_back(scaled, 7, 2, Receipt(7, 2, 0, outcome)) == scaled
    assert TWO.expires_at(scaled) == 4 * SECOND + 7
    slow = Gcra.of(Quota.parse("5 per 100s"))
    assert TWO.expires_at(TWO.scaled(slow.decide(None, 7, 2)[0], 7, slow)) == 40 * SECOND + 7, (  # type: ignore[arg-type]
        "as long as those could still be refunded"
    )
    thirds = THIRD.scaled(TWO.decide(None, 7, 1)[0], 7, TWO)  # type: ignore[arg-type]
    assert thirds[:2] == (3 * SECOND // 2 + 21, 3)  # type: ignore[index]
    sevenths = Gcra.of(Quota(7, 10, 7))
    odd = sevenths.scaled(Gcra(1, 3).decide(None, 0, 1)[0], 0, Gcra(1, 3))  # type: ignore[arg-type]
    assert odd[:2] == (-(-sevenths.depth // 3), 7)  # type: ignore[index]
    assert TWO.ticks(TWO.scaled(TWO.take(None, 7, 9), 7, TWO)) == 10 * SECOND + 7, "debt beyond a burst is forgiven"
    whole = TWO.scaled(THIRD.decide(None, 7, 1)[0], 7, THIRD)  # type: ignore[arg-type]
    assert TWO.ticks(whole) == 3_333_333_334 + 7, "from ticks of a third of a nanosecond, too"


def test_after_a_proportional_change_nothing_is_given_back_of_the_first_charge_there_can_be() -> None:
    """A unit that moved the TAT to the very first tick after 1970 stays charged as any other."""
    rule = Gcra(1, 5)
    state, outcome = rule.decide(None, 0, 1)
    assert isinstance(outcome, Admitted)
    scaled = rule.scaled(state, 0, rule)  # type: ignore[arg-type]  # it was admitted
    assert rule.ticks(rule.give_back(scaled, 0, 1, Receipt(0, 1, 0, outcome))) == 1  # type: ignore[arg-type]


def test_debt_leaves_a_reservation_open_and_counts_as_an_arrival_after_it() -> None:
    """Cancelled afterwards, it gives back what leaves the key as if only the debt had been charged."""
    rule = Gcra(10, 30)
    state, outcome = rule.decide(None, 100, 1, Lease(7, 500))
    assert isinstance(outcome, Admitted)
    owing = rule.take(state, 105, 1)
    assert rule.ticks(owing) == 120
    assert rule.ticks(rule.give_back(owing, 105, 1, Receipt(100, 1, 7, outcome))) == 115  # type: ignore[arg-type]


def test_a_charge_under_what_another_quota_charged_is_found_within_the_nanosecond_its_receipt_tells() -> None:
    """The TAT lies no whole intervals beyond it, which tells nothing: only what time has not paid of it comes back."""
    rule, other = Gcra(23, 92, 3), Gcra(7, 70)
    state, outcome = rule.decide(None, 1_000, 1)
    assert isinstance(outcome, Admitted)
    state, _ = other.decide(state, 1_005, 3)
    assert state == 1_029, "from 1 007 ⅔ on, rounded up, three intervals"
    after = rule.give_back(state, 1_005, 1, Receipt(1_000, 1, 0, outcome))
    assert rule.ticks(after) == 3_080, "7 of its 23 ticks: time has paid the others by 1 005"  # type: ignore[arg-type]


def test_a_refund_from_between_lowers_what_an_open_reservation_can_give_back() -> None:
    """Later arrivals found what was refunded, too: cancelled next, the reservation is no credit for the key's idle time."""
    rule = Gcra(10, 60)
    state, reserved = rule.decide(None, 100, 1, Lease(7, 500))
    state, plain = rule.decide(state, 100, 2)
    state, _ = rule.decide(state, 105, 1)
    assert isinstance(reserved, Admitted)
    assert isinstance(plain, Admitted)
    state = rule.give_back(state, 105, 2, Receipt(100, 2, 0, plain))
    assert rule.ticks(state) == 120  # type: ignore[arg-type]  # there is one
    state = rule.give_back(state, 105, 1, Receipt(100, 1, 7, reserved))
    assert rule.ticks(state) == 120, "115 as if neither had been charged"  # type: ignore[arg-type]


def test_of_a_debt_only_what_is_beyond_a_full_burst_stays_debt_after_a_refund() -> None:
    """The unit that was charged before it comes off what is owed, and the rest is honest as before."""
    state, outcome = TWO.decide(None, 7, 1)
    assert isinstance(outcome, Admitted)
    state = TWO.take(state, 7, 4)
    assert state == (25 * SECOND + 7, 1, 15 * SECOND)
    state = TWO.give_back(state, 7, 1, Receipt(7, 1, 0, outcome))
    assert TWO.dump(state)[:3] == (20 * SECOND + 7, 1, 10 * SECOND)  # type: ignore[arg-type]  # there is one
    state = TWO.give_back(TWO.take(TWO.decide(None, 7, 1)[0], 7, 2), 7, 1, Receipt(7, 1, 0, outcome))
    assert TWO.dump(state)[:3] == (10 * SECOND + 7, 1, 0)  # type: ignore[arg-type]


def test_what_a_key_remembers_is_converted_to_another_quota_s_ticks() -> None:
    """What was given back rounded up, and what may still be given back down; instants that are nanoseconds stay."""
    rule, given, record = Gcra(5, 50, 7), (-900, 10, 3_010, 1_020), (5, 23, 20, 2_000)
    head, given_after, record_after = (7_099, 7, 49), (-900, 24, 7_023, 1_020), (5, 53, 46, 2_000)
    assert rule.take((3_040, 3, 7, *given, *record), 1_000, 1) == (*head, *given_after, *record_after)
    assert rule.take((3_040, 3, 7, *record), 1_000, 1) == (*head, *record_after)
    assert rule.take((3_040, 3, 7, *given), 1_000, 1) == (*head, *given_after)
    assert rule.take((7_094, 7, 49, *given, *record), 1_000, 1) == (*head, *given, *record)


def test_a_rule_in_half_nanoseconds_keeps_its_ticks() -> None:
    """A fresh key and one that another quota's whole nanoseconds tell of: the state says which ticks it is in."""
    halves = Gcra(3, 6, 2)
    assert halves.decide(None, 10, 1) == ((23, 2), Admitted(1, 2, 2))
    assert halves.decide(11, 10, 1) == ((25, 2), Admitted(0, 1, 3))


@pytest.mark.parametrize("numbers", [(7, 2), (7, 1, 0), (7, 3, 5, 1, 2, 3, 4), (7, 1, 0, *range(8))])
def test_a_tat_that_was_written_is_read_as_it_is(numbers: tuple[int, ...]) -> None:
    """(ticks, ticks per nanosecond), and debt with four numbers a record."""
    assert Gcra(10, 40).load(numbers) == numbers


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((), "0 numbers are no TAT"),
        ((7,), "1 numbers are no TAT"),
        ((7, 1, 0, 5), "4 numbers are no TAT"),
        ((7, 1, *range(6)), "8 numbers are no TAT"),
        ((7, 1, *range(7)), "9 numbers are no TAT"),
        ((7, 1, *range(10)), "12 numbers are no TAT"),
        ((7, 0), "a TAT has no 0 ticks per nanosecond"),
        ((7, -1, 0), "a TAT has no -1 ticks per nanosecond"),
    ],
)
def test_a_tat_that_nobody_wrote_is_refused(numbers: tuple[int, ...], said: str) -> None:
    """Neither another count of numbers nor less than a tick per nanosecond is taken for one."""
    with pytest.raises(ValueError, match=f"^{said}$"):
        Gcra(10, 40).load(numbers)
