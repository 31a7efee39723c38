"""``Limit``: a named quota with an algorithm and what it is keyed by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from headway.core.quota import DAY, HOUR, MAX_COUNT, Quota, parse_duration
from headway.core.rule import Rule
from headway.core.rules import rule_of
from headway.errors import LimitError

__all__ = ["Algorithm", "FailureMode", "Limit", "check_name", "requoted"]

_NAME: Final = re.compile(r"[a-z*][a-z0-9_.:/*-]{0,63}\Z")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS: Final = ("wait", "limit", "count")
_LONGEST_TEXT: Final = 500
_TAKEN: Final = {
    **dict.fromkeys(("attributes", "cost", "deadline", "up_to", "self", "limit", "timeout"), "hit"),
    **dict.fromkeys(("ttl", "debt"), "reserve"),
}


class Algorithm(StrEnum):
    """How a limit counts. The names are what policy files and ``replay`` use."""

    GCRA = "gcra"
    TOKEN_BUCKET = "token-bucket"  # noqa: S105  # the field's word, no secret
    LEAKY_BUCKET = "leaky-bucket"
    LEAKY_BUCKET_QUEUE = "leaky-bucket-queue"
    MINIMUM_INTERVAL = "minimum-interval"
    FIXED_WINDOW = "fixed-window"
    ANCHORED_WINDOW = "anchored-window"
    CALENDAR_WINDOW = "calendar-window"
    SLIDING_WINDOW = "sliding-window"
    SLIDING_LOG = "sliding-log"
    CONCURRENCY = "concurrency"
    GROWING_WAIT = "growing-wait"

    @property
    def stored(self) -> str:
        """What stored keys call it: GCRA and its views are one limiter with one state."""
        return "gcra" if self in _VIEWS_OF_GCRA else self.value


_VIEWS_OF_GCRA: Final = frozenset(
    {
        Algorithm.TOKEN_BUCKET,
        Algorithm.LEAKY_BUCKET,
        Algorithm.LEAKY_BUCKET_QUEUE,
        Algorithm.MINIMUM_INTERVAL,
    }
)
_WINDOWS: Final = frozenset({Algorithm.FIXED_WINDOW, Algorithm.ANCHORED_WINDOW, Algorithm.CALENDAR_WINDOW})
_TAKES_BURST: Final = frozenset({Algorithm.GCRA, *_VIEWS_OF_GCRA, Algorithm.GROWING_WAIT}) - {
    Algorithm.MINIMUM_INTERVAL
}


class FailureMode(StrEnum):
    """What happens to a request when the store cannot decide."""

    DENY = "deny"
    ALLOW = "allow"
    LOCAL = "local"


def check_name(kind: str, name: object) -> str:
    """A limit's or policy's name that can go into a header as it is.

    Raises:
        LimitError: names the value and what is accepted.
    """
    if isinstance(name, str) and _NAME.match(name):
        return name
    raise LimitError(
        f"{kind} name {name!r} cannot go into a header: expected 1 to 64 characters, a lower-case letter or * first, "
        "then lower-case letters, digits or any of _ . : / * -"
    )


@dataclass(frozen=True, slots=True)
class Limit:
    """One named limit: ``Limit("per-phone", "5 per day", by="phone")``.

    Args:
        name: what refusals, headers and metrics call it: ``[a-z*][a-z0-9_.:/*-]*``, at most 64 characters.
        quota: a ``Quota`` or its text.
        by: the attribute or attributes that form its key; empty for one counter shared by all.
        algorithm: how it counts; None means GCRA, or the calendar window for a quota "in ZONE".
        cost: a fixed cost, 1 to 10**12, instead of the call's.
        secret: True, or the names among ``by`` whose values leave the limiter only as a keyed hash.
        on_store_failure: what happens when the store cannot decide.
        count_refused: windows only: a request that this limit refuses counts too (up to the limit; the reset never moves).
        shadow: evaluated and counted, never enforced: it never refuses a request nor charges another limit.
        undelayed: leaky-bucket-queue only: units in the bucket that pass without a delay, 1 to burst.
        longest: growing-wait only: the longest wait; text such as "1 hour", or ns.
        forgiven_after: growing-wait only: quiet time after which all is as if unused; at least ``longest``.
        text: what a refusal by this limit says to people instead of "Too many requests for this phone."

    Raises:
        LimitError: a field that cannot be right, named with what is accepted.
        QuotaError: the quota's text, or a zone that is not known here.
    """

    name: str
    quota: Quota
    by: tuple[str, ...] = ()
    algorithm: Algorithm = None  # type: ignore[assignment]  # None stands for the quota's natural one, replaced below
    cost: int | None = None
    secret: frozenset[str] = frozenset()
    on_store_failure: FailureMode = FailureMode.DENY
    count_refused: bool = False
    shadow: bool = False
    undelayed: int = 1
    longest: int = HOUR
    forgiven_after: int = DAY
    text: str | None = None
    rule: Rule = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        name: str,
        quota: Quota | str,
        by: str | Iterable[str] = (),
        *,
        algorithm: Algorithm | str | None = None,
        cost: int | None = None,
        secret: bool | str | Iterable[str] = False,
        on_store_failure: FailureMode | str = FailureMode.DENY,
        count_refused: bool = False,
        shadow: bool = False,
        undelayed: int = 1,
        longest: str | int = HOUR,
        forgiven_after: str | int = DAY,
        text: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "name", check_name("limit", name))
        put(self, "quota", quota if isinstance(quota, Quota) else Quota.parse(quota))
        put(self, "by", self._attributes("by", by))
        put(self, "algorithm", self._algorithm(algorithm))
        if self.algorithm is Algorithm.MINIMUM_INTERVAL and self.quota.count:
            put(self, "quota", replace(self.quota, burst=1))
        put(self, "cost", self._cost(cost))
        put(self, "secret", self._secret(secret))
        put(self, "on_store_failure", _choice(FailureMode, on_store_failure, f"limit {name!r}: on_store_failure"))
        put(self, "count_refused", self._count_refused(count_refused))
        put(self, "shadow", self._flag("shadow", shadow))
        put(self, "undelayed", self._undelayed(undelayed))
        put(self, "longest", self._duration("longest", longest))
        put(self, "forgiven_after", self._duration("forgiven_after", forgiven_after))
        put(self, "text", self._text(text))
        put(self, "rule", rule_of(self))

    @classmethod
    def token_bucket(
        cls, name: str, *, capacity: int, refill: str, by: str | Iterable[str] = (), **options: Any
    ) -> Limit:
        """A bucket of ``capacity`` tokens that ``refill`` ("10 per 30 s") fills continuously: GCRA by its other name.

        Args:
            name: see ``Limit``.
            capacity: the most tokens, 1 to 10**12; a new bucket is full.
            refill: a quota's text without a burst.
            by: see ``Limit``.
            options: the other arguments of ``Limit``.
        """
        return cls._view(name, capacity, refill, by, Algorithm.TOKEN_BUCKET, options)

    @classmethod
    def leaky_bucket(
        cls, name: str, *, capacity: int, leak: str, by: str | Iterable[str] = (), **options: Any
    ) -> Limit:
        """A bucket that holds ``capacity`` units and leaks ``leak`` ("10 per 30 s"); what would overflow is refused.

        The leaky bucket as a meter, GCRA by its other name; see ``token_bucket`` for the arguments. With
        ``algorithm="leaky-bucket-queue"`` it is a queue: what is not the first waits for its turn.
        """
        algorithm = options.pop("algorithm", Algorithm.LEAKY_BUCKET)
        return cls._view(name, capacity, leak, by, algorithm, options)

    @classmethod
    def minimum_interval(cls, name: str, interval: str, by: str | Iterable[str] = (), **options: Any) -> Limit:
        """One unit per ``interval`` ("30 s") and never two at once: GCRA with burst 1."""
        quota = Quota(1, parse_duration(interval))
        return cls(name, quota, by, algorithm=Algorithm.MINIMUM_INTERVAL, **options)

    @classmethod
    def _view(
        cls, name: str, capacity: int, pace: str, by: str | Iterable[str], algorithm: Algorithm, options: dict[str, Any]
    ) -> Limit:
        return cls(name, replace(Quota.parse(pace), burst=capacity), by, algorithm=algorithm, **options)

    def _attributes(self, option: str, names: str | Iterable[str]) -> tuple[str, ...]:
        if not isinstance(names, str | Iterable):
            raise LimitError(
                f"limit {self.name!r}: {option} is {names!r}; expected the name of an attribute, or several"
            )
        found = (names,) if isinstance(names, str) else tuple(names)
        for name in found:
            if not isinstance(name, str) or not _ATTRIBUTE.match(name):  # type: ignore[redundant-expr]  # as a user may write it
                raise LimitError(
                    f"limit {self.name!r}: {option} names {name!r}; an attribute is a name like 'phone' or 'client_ip'"
                )
            if name in _TAKEN:
                raise LimitError(
                    f"limit {self.name!r}: {option} names {name!r}, which is a parameter of {_TAKEN[name]}(); "
                    "choose another name"
                )
        if len(set(found)) != len(found):
            raise LimitError(f"limit {self.name!r}: {option} names an attribute twice: {', '.join(found)}")
        return found

    def _algorithm(self, algorithm: Algorithm | str | None) -> Algorithm:
        quota = self.quota
        natural = (
            Algorithm.CALENDAR_WINDOW
            if quota.zone is not None
            else Algorithm.CONCURRENCY
            if quota.concurrent
            else Algorithm.GCRA
        )
        if algorithm is None:
            return natural
        chosen = _choice(Algorithm, algorithm, f"limit {self.name!r}: algorithm")
        if chosen is Algorithm.CALENDAR_WINDOW and quota.zone is None:
            raise LimitError(
                f"limit {self.name!r}: algorithm {chosen.value!r} needs a quota 'in ZONE', such as '{quota.count}/day in UTC'"
            )
        if natural is not Algorithm.GCRA and chosen is not natural:
            raise LimitError(
                f"limit {self.name!r}: the quota '{quota}' is counted by {natural.value}, not by {chosen.value}"
            )
        own = 1 if chosen is Algorithm.MINIMUM_INTERVAL else quota.count
        if chosen not in _TAKES_BURST and quota.burst not in (quota.count, own):
            raise LimitError(
                f"limit {self.name!r}: {chosen.value} takes no burst; drop 'burst {quota.burst}' or use gcra"
            )
        return chosen

    def _cost(self, cost: int | None) -> int | None:
        if cost is None:
            return None
        if type(cost) is not int or not 1 <= cost <= MAX_COUNT:
            raise LimitError(f"limit {self.name!r}: cost is {cost!r}; expected a whole number from 1 to {MAX_COUNT}")
        return cost

    def _secret(self, secret: bool | str | Iterable[str]) -> frozenset[str]:
        if isinstance(secret, bool):
            return frozenset(self.by) if secret else frozenset()
        names = frozenset(self._attributes("secret", secret))
        unknown = sorted(names - set(self.by))
        if unknown:
            raise LimitError(
                f"limit {self.name!r}: secret names {unknown[0]!r}, which is not among by = {list(self.by)}"
            )
        return names

    def _count_refused(self, count_refused: bool) -> bool:
        if count_refused and self.algorithm not in _WINDOWS:
            raise LimitError(f"limit {self.name!r}: count_refused belongs to windows, not to {self.algorithm.value}")
        return self._flag("count_refused", count_refused)

    def _flag(self, option: str, value: bool) -> bool:
        if isinstance(value, bool):
            return value
        raise LimitError(f"limit {self.name!r}: {option} is {value!r}; expected True or False")

    def _undelayed(self, undelayed: int) -> int:
        if type(undelayed) is not int or not 1 <= undelayed <= max(1, self.quota.burst):
            raise LimitError(
                f"limit {self.name!r}: undelayed is {undelayed!r}; expected a whole number from 1 to the burst, {self.quota.burst}"
            )
        return undelayed

    def _duration(self, option: str, value: str | int) -> int:
        duration = parse_duration(value) if isinstance(value, str) else value
        if type(duration) is not int or duration < 1:
            raise LimitError(
                f"limit {self.name!r}: {option} is {value!r}; expected a duration such as '1 hour', or ns above 0"
            )
        return duration

    def _text(self, text: str | None) -> str | None:
        if text is None:
            return None
        if not isinstance(text, str):
            raise LimitError(f"limit {self.name!r}: text is {text!r}; expected a sentence")
        unknown = [name for name in _PLACEHOLDER.findall(text) if name not in _PLACEHOLDERS]
        if unknown or not text.strip() or not text.isprintable() or len(text) > _LONGEST_TEXT:
            raise LimitError(
                f"limit {self.name!r}: text is {text[:120]!r}; expected at most {_LONGEST_TEXT} printable characters such as "
                "'Too many codes for this phone.', with no placeholders but {wait}, {limit} and {count}"
            )
        return text


def requoted(limit: Limit, quota: Quota | str) -> Limit:
    """The same limit with another quota that is counted the same way, so that its keys keep their state.

    Raises:
        LimitError: the quota is counted by another algorithm, or the limit's options do not fit it.
        QuotaError: the quota's text.
    """
    found = quota if isinstance(quota, Quota) else Quota.parse(quota)
    mixed = limit.algorithm is Algorithm.CONCURRENCY and found.concurrent is not limit.quota.concurrent
    if mixed and limit.quota.count and found.count:
        raise LimitError(
            f"limit {limit.name!r}: '{found}' and '{limit.quota}' are not both counted by concurrency: one says how many "
            "at once, the other how many in a time"
        )
    return replace(limit, quota=found)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _choice(kind: type[_Choice], value: str, place: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise LimitError(f"{place} is {value!r}; expected one of {known}") from None
