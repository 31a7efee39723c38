"""``Limit``: a named quota with an algorithm and what it is keyed by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from headway.core.block import Block
from headway.core.fixed_window import FixedWindow
from headway.core.gcra import Gcra
from headway.core.quota import MAX_COUNT, Quota
from headway.core.rule import Rule
from headway.core.sliding_log import SlidingLog
from headway.errors import LimitError

__all__ = ["Algorithm", "FailureMode", "Limit", "check_name"]

_NAME: Final = re.compile(r"[a-z*][a-z0-9_.:/*-]{0,63}\Z")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_TAKEN: Final = frozenset({"attributes", "cost", "deadline", "up_to", "self", "limit", "timeout"})


class Algorithm(StrEnum):
    """How a limit counts. The names are what policy files, ``replay`` and stored keys use."""

    GCRA = "gcra"
    FIXED_WINDOW = "fixed-window"
    ANCHORED_WINDOW = "anchored-window"
    CALENDAR_WINDOW = "calendar-window"
    SLIDING_LOG = "sliding-log"


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
    ) -> None:
        put = object.__setattr__
        put(self, "name", check_name("limit", name))
        put(self, "quota", quota if isinstance(quota, Quota) else Quota.parse(quota))
        put(self, "by", self._attributes("by", by))
        put(self, "algorithm", self._algorithm(algorithm))
        put(self, "cost", self._cost(cost))
        put(self, "secret", self._secret(secret))
        put(self, "on_store_failure", _choice(FailureMode, on_store_failure, f"limit {name!r}: on_store_failure"))
        put(self, "count_refused", self._count_refused(count_refused))
        put(self, "rule", self._rule())

    def _attributes(self, option: str, names: str | Iterable[str]) -> tuple[str, ...]:
        found = (names,) if isinstance(names, str) else tuple(names)
        for name in found:
            if not _ATTRIBUTE.match(name):
                raise LimitError(
                    f"limit {self.name!r}: {option} names {name!r}; an attribute is a name like 'phone' or 'client_ip'"
                )
            if name in _TAKEN:
                raise LimitError(
                    f"limit {self.name!r}: {option} names {name!r}, which is a parameter of hit(); choose another name"
                )
        if len(set(found)) != len(found):
            raise LimitError(f"limit {self.name!r}: {option} names an attribute twice: {', '.join(found)}")
        return found

    def _algorithm(self, algorithm: Algorithm | str | None) -> Algorithm:
        calendar = self.quota.zone is not None
        if algorithm is None:
            return Algorithm.CALENDAR_WINDOW if calendar else Algorithm.GCRA
        chosen = _choice(Algorithm, algorithm, f"limit {self.name!r}: algorithm")
        if calendar != (chosen is Algorithm.CALENDAR_WINDOW):
            wanted = f"{self.quota} is a calendar quota" if calendar else "a calendar window needs a quota 'in ZONE'"
            raise LimitError(f"limit {self.name!r}: algorithm {chosen.value!r} does not fit: {wanted}")
        if chosen is not Algorithm.GCRA and self.quota.burst != self.quota.count:
            raise LimitError(
                f"limit {self.name!r}: {chosen.value} takes no burst (its whole count may come at once); "
                f"drop 'burst {self.quota.burst}' or use gcra"
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
        windows = (Algorithm.FIXED_WINDOW, Algorithm.ANCHORED_WINDOW, Algorithm.CALENDAR_WINDOW)
        if count_refused and self.algorithm not in windows:
            raise LimitError(f"limit {self.name!r}: count_refused belongs to windows, not to {self.algorithm.value}")
        return bool(count_refused)

    def _rule(self) -> Rule:
        quota = self.quota
        if quota.count == 0:
            return Block()
        if quota.zone is not None:
            from headway.core.calendar_window import CalendarWindow  # loads zoneinfo, which most limits do without

            return CalendarWindow.of(quota, count_refused=self.count_refused)
        match self.algorithm:
            case Algorithm.FIXED_WINDOW | Algorithm.ANCHORED_WINDOW:
                anchored = self.algorithm is Algorithm.ANCHORED_WINDOW
                return FixedWindow(quota.count, quota.period_ns, anchored, self.count_refused)
            case Algorithm.SLIDING_LOG:
                return SlidingLog(quota.count, quota.period_ns)
            case _:
                return Gcra.of(quota)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _choice(kind: type[_Choice], value: str, place: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise LimitError(f"{place} is {value!r}; expected one of {known}") from None
