"""What one policy would have refused, as values: per limit and per key, when and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from headway.analysis.logs.block import printable
from headway.analysis.replay.side import Side
from headway.analysis.replay.tally import KeyTally, LimitTally
from headway.analysis.suggest.masks import masked
from headway.core.key import Key
from headway.core.limit import Limit
from headway.policy.choice import Choice, limits_of
from headway.policy.variants import shown

__all__ = ["KeyRefusals", "LimitReplay", "SideReplay", "maybe_instant", "say_instant", "shown_key"]

_SECOND: Final = 1_000_000_000
_LONGEST_VALUE: Final = 10_000


@dataclass(frozen=True, slots=True)
class KeyRefusals:
    """What one key was refused by one limit; times in ns, instants in ns since 1970.

    Attributes:
        key: its values in the order of the limit's ``by``, printable.
        requests: how many it had.
        refused: how many of them were refused.
        first: when the first was refused.
        last: when the last was.
        longest_told: the longest wait that was told.
        never: how many were told that no wait helps.
        stretches: how often the limit closed to it.
        closed: for how long in all: from each stretch's first refusal until the wait told last was over.
        longest_closed: for how long at most without a break.
        behind: how many different values of another field its requests had; None if not asked.
    """

    key: tuple[str, ...]
    requests: int
    refused: int
    first: int
    last: int
    longest_told: int
    never: int
    stretches: int
    closed: int
    longest_closed: int
    behind: int | None

    @classmethod
    def of(
        cls,
        by: tuple[str, ...],
        key: Key,
        tally: KeyTally,
        limit: LimitTally,
        *,
        behind: bool,
        secrets: frozenset[str] = frozenset(),
    ) -> KeyRefusals:
        """The refusals of one key."""
        return cls(
            shown_key(by, key, secrets),
            limit.requests[key],
            tally.refused,
            tally.first,
            tally.last,
            tally.longest_told,
            tally.never,
            tally.stretches,
            tally.closed,
            tally.longest_closed,
            len(limit.behind.get(key, ())) if behind else None,
        )

    def to_dict(self, by: tuple[str, ...]) -> dict[str, Any]:
        """The same as JSON-able values; times in seconds."""
        return {
            "key": dict(zip(by, self.key, strict=True)),
            "requests": self.requests,
            "refused": self.refused,
            "first": say_instant(self.first),
            "last": say_instant(self.last),
            "longest_told_s": self.longest_told / _SECOND,
            "never": self.never,
            "stretches": self.stretches,
            "closed_s": self.closed / _SECOND,
            "longest_closed_s": self.longest_closed / _SECOND,
            **({} if self.behind is None else {"behind": self.behind}),
        }


@dataclass(frozen=True, slots=True)
class LimitReplay:
    """What one limit refused; times in ns, instants in ns since 1970, None where it refused nothing.

    Attributes:
        name: the limit's.
        quota: its quota, or its quotas in one line where they depend on the request.
        algorithm: how it counts.
        by: what it is keyed by.
        shadow: it is only evaluated: what it "refused" it would have.
        asked: requests that it applied to.
        refused: how many of them it refused.
        bound: how many refusals it was the reason of.
        never: how many were told that no wait helps.
        keys: different keys.
        keys_refused: keys with a refused request.
        first: when it first refused.
        last: when it did last.
        told_mean: the mean of the waits that were told.
        told_median: their median, rounded up by at most a sixteenth.
        told_most: the longest.
        most_refused: the keys most often refused, the most first; ties in the order of their first refusal.
        callers: of a limit without a key: (caller, how often it was refused), the most first.
    """

    name: str
    quota: str
    algorithm: str
    by: tuple[str, ...]
    shadow: bool
    asked: int
    refused: int
    bound: int
    never: int
    keys: int
    keys_refused: int
    first: int | None
    last: int | None
    told_mean: int | None
    told_median: int | None
    told_most: int | None
    most_refused: tuple[KeyRefusals, ...]
    callers: tuple[tuple[str, int], ...]

    @classmethod
    def of(
        cls,
        part: Limit | Choice,
        tally: LimitTally,
        top: int,
        *,
        behind: bool,
        secrets: frozenset[str] = frozenset(),
    ) -> LimitReplay:
        """What a tally comes to, with the ``top`` keys most refused."""
        limit, told = limits_of(part)[0], tally.told
        most = sorted(tally.keys.items(), key=lambda item: -item[1].refused)[:top]
        return cls(
            limit.name,
            _quotas(part),
            limit.algorithm.value,
            limit.by,
            limit.shadow,
            tally.asked,
            tally.refused,
            tally.bound,
            tally.never,
            len(tally.requests),
            len(tally.keys),
            tally.first,
            tally.last,
            told.whole // told.count if told.count else None,
            told.quantile(0.5) if told.count else None,
            told.most if told.count else None,
            tuple(KeyRefusals.of(limit.by, key, found, tally, behind=behind, secrets=secrets) for key, found in most),
            tuple((shown_key(("",), caller)[0], refused) for caller, refused in tally.callers.most_common(top)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able values; times in seconds."""
        return {
            "limit": self.name,
            "quota": self.quota,
            "algorithm": self.algorithm,
            "by": list(self.by),
            "shadow": self.shadow,
            "asked": self.asked,
            "refused": self.refused,
            "bound": self.bound,
            "never": self.never,
            "keys": self.keys,
            "keys_refused": self.keys_refused,
            "first": maybe_instant(self.first),
            "last": maybe_instant(self.last),
            "told_mean_s": _maybe_seconds(self.told_mean),
            "told_median_s": _maybe_seconds(self.told_median),
            "told_most_s": _maybe_seconds(self.told_most),
            "most_refused": [key.to_dict(self.by) for key in self.most_refused],
            **(
                {"callers": [{"caller": caller, "refused": refused} for caller, refused in self.callers]}
                if self.callers
                else {}
            ),
        }


@dataclass(frozen=True, slots=True)
class SideReplay:
    """What one policy would have refused.

    Attributes:
        policy: its name.
        source: the file it is from, or what else says where.
        requests: the requests that were decided, exempt ones included.
        refused: how many of them were refused.
        exempt: how many of them were exempt.
        undecided: requests that could not be decided, by the attribute that they lack or that says nothing to a limit.
        left_out: limits on requests at once, which a log cannot tell.
        limits: the others, in the policy's order.
    """

    policy: str
    source: str
    requests: int
    refused: int
    exempt: int
    undecided: Mapping[str, int]
    left_out: tuple[str, ...]
    limits: tuple[LimitReplay, ...]

    @classmethod
    def of(
        cls, side: Side, source: str, top: int, *, behind: bool, secrets: frozenset[str] = frozenset()
    ) -> SideReplay:
        """What a side comes to."""
        parts = zip(side.policy.limits, side.limits.values(), strict=True)
        limits = tuple(LimitReplay.of(part, tally, top, behind=behind, secrets=secrets) for part, tally in parts)
        return cls(
            side.policy.name,
            source,
            side.requests,
            side.refused,
            side.exempt,
            dict(side.undecided),
            side.left_out,
            limits,
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able values."""
        return {
            "policy": self.policy,
            "source": self.source,
            "requests": self.requests,
            "refused": self.refused,
            "exempt": self.exempt,
            "undecided": dict(self.undecided),
            "left_out": list(self.left_out),
            "limits": [limit.to_dict() for limit in self.limits],
        }


def shown_key(by: tuple[str, ...], key: Key, secrets: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """A key's values in the order of ``by``, printable; of one taken from the first of several fields, its value alone.

    Args:
        by: the names.
        key: the key.
        secrets: names whose values are masked.
    """
    parts: Any = (key,) if len(by) == 1 else key
    return tuple(_shown(part, secret=name in secrets) for name, part in zip(by, parts, strict=True))


def _shown(part: Key, *, secret: bool) -> str:
    secret = part[0] == "api_key" if isinstance(part, tuple) and len(part) == 2 else secret
    return masked(_text(part)) if secret else printable(_text(part), _LONGEST_VALUE)


def _quotas(part: Limit | Choice) -> str:
    """A limit's quota, or in one line its quotas and what they depend on."""
    if isinstance(part, Limit):
        return shown(part)
    inner: Any = part
    while inner is not None and not isinstance(inner, Limit):
        inner = getattr(inner, "limit", None)  # of a condition, of overrides; tiers have their quotas in their text
    return f"{shown(inner)} {part}" if inner is not None and inner.quota.count else str(part)


def _text(part: Key) -> str:
    if isinstance(part, tuple):
        return _text(part[-1]) if part else ""
    return part if isinstance(part, str) else part.decode("utf-8", "backslashreplace")


def say_instant(nanoseconds: int) -> str:
    """Nanoseconds since 1970 as "2015-10-25T03:11:25Z", rounded down to the microsecond."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1_000)
    return moment.isoformat().replace("+00:00", "Z")


def maybe_instant(nanoseconds: int | None) -> str | None:
    """``say_instant``, or None."""
    return None if nanoseconds is None else say_instant(nanoseconds)


def _maybe_seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _SECOND
