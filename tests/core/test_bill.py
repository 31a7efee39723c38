"""Settling a bill, and which limit binds a verdict."""

from __future__ import annotations

import pytest

from headway.core.bill import settle
from headway.core.concurrency import Concurrency
from headway.core.fixed_window import FixedWindow, Window
from headway.core.gcra import Gcra
from headway.core.lease import Lease
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import MINUTE, SECOND, Quota
from headway.core.verdict import DEGRADED_WAIT_NS, Verdict

FIVE = Gcra.of(Quota.parse("5 per 10s"))
ONE = Gcra.of(Quota.parse("1 per 60s"))


def test_when_all_admit_every_state_is_written() -> None:
    """Each charge is in the writes with its new state; cost 0 has nothing to write."""
    settled = settle([FIVE, ONE, FIVE], [None, None, 5 * SECOND], [2, 1, 0], 0)
    assert settled.allowed
    assert settled.writes == ((0, 4 * SECOND), (1, 60 * SECOND))
    assert [outcome.remaining for outcome in settled.outcomes] == [3, 0, 2]


def test_each_charge_has_its_own_lease() -> None:
    """The one beside it in the bill, or none."""
    slots = Concurrency(5, 10)
    settled = settle([slots, slots, slots], [None] * 3, [1, 2, 3], 0, leases=[Lease(7, 1), None, Lease(9, 1)])
    assert [state for _, state in settled.writes] == [(10, 7, 1), (10, 0, 2), (10, 9, 3)]


def test_whether_a_bill_passes_is_true_or_false() -> None:
    """Nothing else: it goes into answers and documents as it is; a shadow limit has no say."""
    assert settle([ONE], [None], [1], 0).allowed is True
    assert settle([ONE, FIVE], [None, None], [2, 1], 0).allowed is False
    assert settle([ONE, FIVE], [None, None], [2, 1], 0, shadows=[False, True]).allowed is False
    assert settle([ONE, FIVE], [None, None], [2, 1], 0, shadows=[True, False]).allowed is True


def test_when_one_refuses_nothing_is_written_and_the_others_are_shown_as_they_stand() -> None:
    """The admitting limit's outcome is a look: its balance without this request."""
    settled = settle([FIVE, ONE], [2 * SECOND, 60 * SECOND], [3, 1], 0)
    assert not settled.allowed
    assert settled.writes == ()
    assert settled.outcomes == (Admitted(4, 2 * SECOND, 2 * SECOND), Refused(0, 60 * SECOND, 60 * SECOND, 60 * SECOND))


def test_a_dishonest_state_is_capped_on_refusal_and_only_there() -> None:
    """The refusing limit's cap is written; the admitting one's is not, although it too would be capped."""
    far = 10**18
    settled = settle([ONE, FIVE], [far, far], [1, 6], 0)
    assert settled.writes == ((0, 60 * SECOND), (1, 10 * SECOND))
    peek = settle([FIVE, ONE], [far, 60 * SECOND], [0, 1], 0)
    assert peek.writes == ()


def test_a_counted_refusal_is_written_for_the_refusing_window_alone() -> None:
    """``count_refused`` fills the window that refused; a sibling's refusal leaves it untouched."""
    counting = FixedWindow(5, MINUTE, count_refused=True)
    own = settle([counting, FIVE], [Window(MINUTE, 4), None], [2, 2], 0)
    assert own.writes == ((0, Window(MINUTE, 5)),)
    siblings = settle([counting, ONE], [Window(MINUTE, 4), 60 * SECOND], [1, 1], 0)
    assert siblings.writes == ()


def test_a_wait_below_one_nanosecond_cannot_be_made() -> None:
    """A refusal without a wait would be an answer nobody can act on."""
    for wait in (0, -1):
        with pytest.raises(ValueError, match="at least 1 ns"):
            Refused(0, wait, 0, 0)


def verdict(*outcomes: tuple[str, Outcome | None], allowed: bool, degraded: str | None = None) -> Verdict:
    limits = tuple(Limit(name, "5/s") for name, _ in outcomes)
    return Verdict(limits, tuple(outcome for _, outcome in outcomes), allowed, 0, degraded)


def test_the_binding_limit_is_the_longest_wait_or_the_fewest_left_with_ties_by_name() -> None:
    """Refused: never, then the longest wait; admitted: the fewest remaining."""
    short, long = Refused(0, 5, 5, 5), Refused(0, 9, 9, 9)
    assert verdict(("a", short), ("b", long), ("c", Admitted(0, 1, 1)), allowed=False).binding is long
    assert verdict(("a", long), ("b", Never(5, 5, 0, 0)), allowed=False).never
    tied = verdict(("b", long), ("a", long), allowed=False)
    assert tied.limit is tied.limits[1]
    assert verdict(("a", Admitted(3, 1, 1)), ("b", Admitted(2, 1, 1)), allowed=True).bound == 1
    assert verdict(("b", Admitted(2, 1, 1)), ("a", Admitted(2, 1, 1)), allowed=True).bound == 1
    assert [limit.name for limit in verdict(("a", short), ("b", Admitted(1, 0, 0)), allowed=False).violated] == ["a"]


def test_a_decision_without_the_store_has_a_short_wait_and_no_binding_outcome() -> None:
    """Denied while degraded: come back in about a second; admitted: nothing to say."""
    denied = verdict(("a", None), ("b", None), allowed=False, degraded="away")
    assert denied.retry_after == DEGRADED_WAIT_NS
    assert denied.binding is None
    assert denied.limit is denied.limits[0]
    assert not denied.never
    assert verdict(("a", None), allowed=True, degraded="away").retry_after == 0
