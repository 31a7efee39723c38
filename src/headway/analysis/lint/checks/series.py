"""What only several answers to the same request show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.analysis.lint.facts import Facts
from headway.analysis.lint.finding import Finding

__all__ = ["check"]

_LATE = 0.5
"""Of the told wait: whoever comes later than this after its end may have been preceded by somebody else."""


def check(seen: Sequence[Facts]) -> Iterator[Finding]:
    """Findings of answers that came one after another: a wait that was kept and did not help."""
    before: dict[tuple[str, str], tuple[Facts, float, float]] = {}
    for facts in seen:
        answer = facts.answer
        at = facts.date if answer.received_at is None else answer.received_at.timestamp()
        if at is None or answer.asked is None:
            continue
        key = (answer.asked, ", ".join(facts.violated))
        if facts.kind is None:
            before = {other: one for other, one in before.items() if other[0] != answer.asked}
            continue
        earlier = before.get(key)
        if earlier is not None and facts.limited:
            first, came, told = earlier
            after = at - (came + told)
            if 0 <= after <= max(1.0, told * _LATE):
                yield Finding(
                    "retry-after-early",
                    f"refused again {after:.3g} s after the wait of {told:g} s that {first.answer.place} told was over",
                    answer.place,
                )
        if facts.told is not None and facts.told > 0:
            before[key] = (facts, at, facts.told)
