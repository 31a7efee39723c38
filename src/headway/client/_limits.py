"""The limits a response shows: one `ShownLimit` each, and the choice of the violated one.

The rules of the choice:

* a limit that the response names as violated counts, whatever it has left (a request may cost more than is left);
* else a limit counts when nothing is left of it; of several, the one with the longest wait;
* a limit with something left is a decoy: its numbers and its reset say nothing about this refusal;
* a limit that doesn't say what is left counts when no other limit is shown.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.client._prose import period_of_name


@dataclass(frozen=True, slots=True)
class ShownLimit:
    """One limit as a response shows it.

    Attributes:
        label: What tells it from its siblings, in the spelling of the wire; empty for the only one.
        limit: How many it allows.
        remaining: How many are left.
        reset: Seconds from the server's now to its reset, negative for the past.
        wait: Seconds to the next request it allows, when that is said apart from the reset.
        window: Its period in seconds.
        name: A name given beside the numbers.
        source: The field the wait comes from.
        refuses: The response itself says that this limit refused, whatever is left of it.
    """

    label: str = ""
    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    wait: float | None = None
    window: float | None = None
    name: str | None = None
    source: str = ""
    refuses: bool = False

    @property
    def exhausted(self) -> bool:
        """Whether nothing, or too little, is left of it."""
        return self.refuses or (self.remaining == 0 and self.limit != 0)

    @property
    def longest(self) -> float:
        """The wait for ordering: its hint, its reset, or nothing."""
        return self.wait if self.wait is not None else self.reset if self.reset is not None else -1.0


_PLAIN = re.compile(r"[^a-z0-9]+")


def violated(shown: list[ShownLimit], named: Iterable[str]) -> ShownLimit | None:
    """Choose the limit a refusal is about, with what its twins know of it; None when only decoys are shown.

    Args:
        shown: Every limit of the response.
        named: What the response names as violated, in the spelling of the wire.
    """
    if not shown:
        return None
    chosen = _named(shown, named)
    if chosen is None:
        spent = [one for one in shown if one.exhausted]
        if spent:
            chosen = max(spent, key=lambda one: (one.longest, bool(one.label or one.name), one.window or 0.0))
            chosen = _labelled_twin(chosen, shown)
        elif all(one.remaining is None for one in shown):
            candidates = [one for one in shown if one.limit != 0]
            chosen = candidates[0] if len(candidates) == 1 else None
    return None if chosen is None else _completed(chosen, shown)


def _named(shown: list[ShownLimit], named: Iterable[str]) -> ShownLimit | None:
    """Return the limit that is named as violated: an exact match first, then the one with the least left."""
    for name in named:
        wanted = _PLAIN.sub("", name.lower())
        for exact in (True, False):
            matching = [one for one in shown if _matches(one, wanted, exact=exact)]
            if matching:
                return max(matching, key=lambda one: (one.exhausted, one.longest, one.window or 0.0))
    return None


def _matches(one: ShownLimit, wanted: str, *, exact: bool) -> bool:
    """Whether a name, without signs and case, means this limit."""
    for label in (one.label, one.name):
        have = _PLAIN.sub("", (label or "").lower())
        if have and (have == wanted if exact else len(have) > 2 and _same_thing(have, wanted)):
            return True
    return False


def _same_thing(label: str, wanted: str) -> bool:
    """Whether a label and a name mean one limit: one starts the other, or both state one period."""
    if wanted.startswith(label) or label.startswith(wanted):
        return True
    period = period_of_name(label)
    return period is not None and period == period_of_name(wanted)


def _labelled_twin(chosen: ShownLimit, shown: list[ShownLimit]) -> ShownLimit:
    """Return the spent limit that shows the same numbers under a label, if the chosen one has none.

    One label that carries nothing but a limit gives that limit to a limit without one.
    """
    if chosen.label or chosen.name:
        return chosen
    for one in shown:
        if one.exhausted and (one.label or one.name) and one.limit in (chosen.limit, None) and one.reset is None:
            return one
    bare = [one for one in shown if one.label and one.remaining is None and one.reset is None]
    if chosen.limit is None and len(bare) == 1:
        return replace(chosen, label=bare[0].label, limit=bare[0].limit, window=bare[0].window)
    return chosen


def _completed(chosen: ShownLimit, shown: list[ShownLimit]) -> ShownLimit:
    """Fill the gaps of a limit from twins: the same or no label, and no number that contradicts it."""
    for one in shown:
        if one is chosen or (one.label and one.label.lower() != chosen.label.lower()):
            continue
        if _differ(one.limit, chosen.limit) or _differ(one.remaining, chosen.remaining):
            continue
        chosen = replace(
            chosen,
            limit=chosen.limit if chosen.limit is not None else one.limit,
            remaining=chosen.remaining if chosen.remaining is not None else one.remaining,
            reset=chosen.reset if chosen.reset is not None else one.reset,
            wait=chosen.wait if chosen.wait is not None else one.wait,
            window=chosen.window if chosen.window is not None else one.window,
            name=chosen.name or one.name,
            source=chosen.source or one.source,
        )
    return chosen


def _differ(one: int | None, other: int | None) -> bool:
    """Whether two numbers are both known and not the same."""
    return one is not None and other is not None and one != other
