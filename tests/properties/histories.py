"""Random limits of every algorithm and random histories of calls, for hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Outcome, Refused
from headway.core.quota import DAY, HOUR, MAX_RECOVERY_NS, MINUTE, SECOND, Quota
from headway.core.rule import Rule, State

EPOCH = 1_800_000_000 * SECOND

counts = st.one_of(
    st.integers(1, 12), st.sampled_from([60, 100, 1000, 3_000_000, 999_999_999_989, 10**12]), st.integers(1, 10**12)
)
periods = st.one_of(
    st.sampled_from([1, 999, SECOND, 10 * SECOND, MINUTE, HOUR, DAY, 365 * DAY, 1_000_003, 86_400_000_000_001]),
    st.integers(1, 100 * DAY),
)


@st.composite
def quotas(draw: st.DrawFn) -> Quota:
    """Any quota with a burst of its own."""
    count, period = draw(counts), draw(periods)
    most = min(10**12, MAX_RECOVERY_NS * count // period)
    burst = draw(st.one_of(st.just(min(count, most)), st.integers(1, min(12, most)), st.integers(1, most)))
    return Quota(count, period, burst)


small_quotas = st.builds(Quota, st.integers(1, 12), periods)
"""Quotas whose burst is their count, small enough for a log."""

gcra_limits = quotas().map(lambda quota: Limit("l", quota, by="id"))


WINDOWS = [
    Algorithm.FIXED_WINDOW,
    Algorithm.ANCHORED_WINDOW,
    Algorithm.CALENDAR_WINDOW,
    Algorithm.SLIDING_LOG,
    Algorithm.SLIDING_WINDOW,
]


@st.composite
def window_limits(draw: st.DrawFn, algorithm: Algorithm | None = None) -> Limit:
    """Any limit of that algorithm, or of any other than GCRA."""
    algorithm = algorithm or draw(st.sampled_from(WINDOWS))
    if algorithm is Algorithm.CALENDAR_WINDOW:
        unit = draw(st.sampled_from(["day", "week", "month"]))
        zone = draw(
            st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu"])
        )
        return Limit("l", f"{draw(st.integers(1, 12))} per {unit} in {zone}", by="id")
    return Limit("l", draw(small_quotas), by="id", algorithm=algorithm)


limits = st.one_of(gcra_limits, window_limits())


def limits_like(limit: Limit) -> st.SearchStrategy[Limit]:
    """Limits of the same algorithm, with any quota."""
    return gcra_limits if limit.algorithm is Algorithm.GCRA else window_limits(limit.algorithm)


@dataclass(frozen=True)
class Step:
    """A move of the clock and the cost then asked.

    ``hint`` 1 moves exactly to the wait told last, 0 to one unit before it, None moves by ``share`` of the period.
    """

    hint: int | None
    share: float
    cost: int

    def move(self, period: int, told: int) -> int:
        if self.hint is not None and told:
            return max(0, told - 1 + self.hint)
        return int(period * self.share)


@st.composite
def steps(draw: st.DrawFn, backwards: bool = False) -> Step:
    """Mostly small costs and moves within a period or two; with ``backwards`` now and then back, by up to years."""
    share = draw(st.one_of(st.just(0.0), st.floats(0, 0.3), st.floats(0, 2.5)))
    if backwards and draw(st.integers(0, 3)) == 0:
        share = -draw(st.sampled_from([1e-9, 1e-3, 0.5, 1.0, 20.0, 3000.0]))
    cost = draw(st.one_of(st.just(1), st.integers(0, 5), st.integers(0, 14)))
    return Step(draw(st.sampled_from([None, None, 0, 1])), share, cost)


histories = st.lists(steps(), max_size=25)
histories_with_clock_steps = st.lists(steps(backwards=True), max_size=25)


def told(outcome: Outcome) -> int:
    """The wait of a refusal, else how long until more can be spent."""
    return outcome.retry_after if isinstance(outcome, Refused) else outcome.replenish_after


def play(
    rule: Rule,
    period: int,
    history: list[Step],
    *,
    state: State | None = None,
    now: int = EPOCH,
    see: Callable[[int, int, State, State, Outcome], object] = lambda *seen: None,
) -> tuple[State | None, int]:
    """Run a history through a rule; ``see(now, cost, before, after, outcome)`` each step. The state and time at its end."""
    wait = 0
    for step in history:
        now = max(1, now + step.move(period, wait))
        after, outcome = rule.decide(state, now, step.cost)
        see(now, step.cost, state, after, outcome)
        state, wait = after, told(outcome)
    return state, now
