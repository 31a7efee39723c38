"""Verdicts: which limit binds, how long to wait, who refused, with and without a store."""

from __future__ import annotations

import pytest

from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.quota import SECOND
from headway.core.verdict import DEGRADED_WAIT_NS, Verdict

NOW = 1_800_000_000 * SECOND
A, B, C = (Limit(name, "5/s", by="id") for name in "abc")
QUIET = Limit("quiet", "5/s", by="id", shadow=True)


def refused(wait: int) -> Refused:
    """A refusal for that many ns."""
    return Refused(0, wait, wait, wait)


def denied(limits: tuple[Limit, ...], *outcomes: Outcome | None, degraded: str | None = None) -> Verdict:
    """A request that did not pass."""
    return Verdict(limits, outcomes, False, NOW, degraded)


def passed(limits: tuple[Limit, ...], *outcomes: Outcome | None, degraded: str | None = None) -> Verdict:
    """A request that passed."""
    return Verdict(limits, outcomes, True, NOW, degraded)


def test_of_those_that_admit_the_fewest_remaining_binds() -> None:
    """Not the first, not the last; the answer says that no wait is needed."""
    verdict = passed((A, B, C), Admitted(2, 5, 5), Admitted(1, 9, 9), Admitted(3, 1, 1))
    assert verdict.bound == 1
    assert verdict.limit is B
    assert verdict.binding == Admitted(1, 9, 9)
    assert (verdict.never, verdict.blocked, verdict.retry_after) == (False, False, 0)


def test_of_those_that_refuse_the_longest_wait_binds() -> None:
    """One that admits never binds a refusal, however little is left of it."""
    verdict = denied((A, B, C), refused(3), refused(7), Admitted(0, 99, 99))
    assert verdict.bound == 1
    assert verdict.limit is B
    assert verdict.retry_after == 7
    assert (verdict.never, verdict.blocked) == (False, False)
    assert verdict.violated == (A, B)


def test_never_is_longer_than_any_wait() -> None:
    """No wait is told then: not a finite one, and not the sibling's."""
    verdict = denied((A, B, C), refused(10**18), Never(5, 5, 0, 0), refused(1))
    assert verdict.bound == 1
    assert (verdict.never, verdict.blocked) == (True, False)
    assert verdict.retry_after is None
    assert verdict.violated == (A, B, C)


def test_a_burst_of_nothing_is_a_block() -> None:
    """A cost above a burst could be split; where the burst is 0 nothing helps."""
    verdict = denied((A, B), refused(9), Never(0, 0, 0, 0))
    assert (verdict.never, verdict.blocked) == (True, True)
    assert not denied((A,), Never(1, 0, 0, 0)).blocked


@pytest.mark.parametrize("limits", [(A, B), (B, A)])
def test_ties_go_by_name(limits: tuple[Limit, ...]) -> None:
    """The order in which a policy names its limits changes nothing."""
    assert passed(limits, Admitted(1, 5, 5), Admitted(1, 9, 9)).limit is A
    assert denied(limits, refused(5), refused(5)).limit is A
    assert denied(limits, Never(2, 0, 0, 0), Never(3, 0, 0, 0)).limit is A


def test_a_shadow_limit_never_binds() -> None:
    """It is listed among those that would have refused, and nowhere else."""
    verdict = denied((QUIET, A), Never(0, 0, 0, 0), refused(5))
    assert verdict.limit is A
    assert verdict.violated == (A,)
    assert verdict.shadowed == (QUIET,)
    admitted = passed((QUIET, A), refused(5), Admitted(3, 1, 1))
    assert admitted.limit is A
    assert admitted.violated == ()
    assert admitted.shadowed == (QUIET,)
    assert passed((QUIET,), Admitted(0, 1, 1)).bound is None
    assert passed((QUIET,), Admitted(0, 1, 1)).shadowed == ()


def test_an_outcome_for_each_limit_or_none_of_it() -> None:
    """Limits and outcomes that do not belong together are an error, not a shorter list."""
    with pytest.raises(ValueError, match="shorter"):
        _ = denied((A, B), refused(5)).violated
    with pytest.raises(ValueError, match="shorter"):
        _ = passed((A, B), Admitted(1, 5, 5)).delay


def test_without_limits_nothing_binds() -> None:
    """What no limit applies to passes."""
    verdict = passed(())
    assert (verdict.bound, verdict.limit, verdict.binding) == (None, None, None)
    assert (verdict.retry_after, verdict.delay) == (0, 0)
    assert (verdict.never, verdict.blocked, verdict.violated, verdict.shadowed) == (False, False, (), ())


def test_a_degraded_denial_names_a_limit_that_asks_for_one() -> None:
    """The first whose failure mode is deny, else the first; about as long to wait as a breaker takes."""
    allow = Limit("z", "5/s", by="id", on_store_failure="allow")
    verdict = denied((allow, B, A), None, None, None, degraded="down")
    assert (verdict.bound, verdict.binding) == (None, None)
    assert verdict.limit is B
    assert verdict.retry_after == DEGRADED_WAIT_NS == SECOND
    assert (verdict.never, verdict.blocked, verdict.violated) == (False, False, ())
    assert denied((allow,), None, degraded="down").limit is allow


def test_degraded_and_allowed_names_no_limit() -> None:
    """Nothing is known of any; what a local stand-in answered binds as usual."""
    assert passed((A, B), None, None, degraded="down").limit is None
    assert passed((A, B), None, Admitted(4, 1, 1), degraded="down").limit is B
    assert denied((A, B), None, refused(4), degraded="down").limit is B


def test_the_longest_delay_is_the_request_s() -> None:
    """Of the enforced limits that admit; a refused request has none, and no shadow limit slows one down."""
    outcomes = (Admitted(1, 5, 5, delay=3), Admitted(1, 5, 5, delay=8), Admitted(1, 5, 5))
    assert passed((A, B, C), *outcomes).delay == 8
    assert passed((A, QUIET, C), *outcomes).delay == 3
    assert passed((A, QUIET), Admitted(1, 5, 5), refused(9)).delay == 0
    assert denied((A, B), Admitted(1, 5, 5, delay=3), refused(9)).delay == 0
