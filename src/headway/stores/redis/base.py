"""What ``RedisStore`` and ``AsyncRedisStore`` share: their options, and what is known without asking."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.core.quota import SECOND, parse_duration
from headway.core.rule import State
from headway.errors import ConfigError, LimitError, QuotaError
from headway.stores.base import Answer, settled_bill
from headway.stores.clock import Clock
from headway.stores.redis.bills import MOST_TOGETHER, Decided
from headway.stores.redis.clients import settings_of
from headway.stores.redis.codec import form_of
from headway.stores.redis.keys import stored_key
from headway.stores.redis.lane import Made, Near, known_refusals, one_way
from headway.stores.redis.settings import Settings, read_url
from headway.stores.redis.topology import Topology
from headway.stores.refusal_cache import Family, Known, RefusalCache
from headway.stores.share import read_share

__all__ = ["BaseRedisStore"]

DEADLINE_S: Final = 0.1
REFUSAL_CACHE_S: Final = 1.0


class BaseRedisStore:
    """Not for direct use; see ``RedisStore``."""

    def __init__(
        self,
        where: object,
        *,
        deadline: float | None = None,
        refusal_cache: float | None = None,
        share: Fraction | float | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        chosen: dict[str, Any] = {}
        if isinstance(where, str):
            self.settings, chosen = read_url(where, _OPTIONS)
        elif isinstance(where, Settings):
            self.settings = where
        else:
            self.settings = settings_of(where)
        given = {"deadline": deadline, "refusal_cache": refusal_cache, "share": share}
        chosen |= {name: value for name, value in given.items() if value is not None}
        self.deadline = _seconds("deadline", chosen.get("deadline", DEADLINE_S), least=0.001)
        self.refusal_cache = _seconds("refusal_cache", chosen.get("refusal_cache", REFUSAL_CACHE_S), least=0.0)
        try:
            self.share = read_share(chosen.get("share", 1))
        except ValueError as error:
            raise ConfigError(f"share is {share!r}; {error}") from None
        self._clock = clock
        self.now: Clock = time.time_ns if clock is None else clock
        self.topology = self.new_topology()
        ticks = None if clock is None else (lambda: clock() // 1_000 * 1_000)
        self.refusals = RefusalCache(self.refusal_cache, ticks, _family_of(self.settings) if clock is None else None)

    def __reduce__(self) -> tuple[object, ...]:
        """A pickled copy connects for itself."""
        options = (self.deadline, self.refusal_cache, self.share, self._clock)
        return (_restore, (type(self), self.settings, *options))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.settings}>"

    def new_topology(self) -> Topology:
        """Knows nothing yet but the settings."""
        return Topology(self.settings, time.monotonic, self.deadline if self._clock is None else None)

    def short(self, namespace: str, limits: Sequence[Limit]) -> Callable[[Sequence[Key], Sequence[int]], Made | None]:
        """A limiter's short way: from one key and one cost above 0 per limit to a decision, or None: take the long one.

        Raises:
            LimitError: a limit whose numbers Redis cannot hold exactly.
        """
        for limit in limits:
            form_of(limit)
        return known_refusals(self, namespace, limits)

    def one(
        self, namespace: str, limit: Limit, attribute: str
    ) -> Callable[[Mapping[str, object], int], tuple[object, ...] | None]:
        """The shortest way, for one limit by one attribute: from attributes and a cost to a decision's parts, or None."""
        near = Near(self)
        return one_way(self, attribute, near, known_refusals(self, namespace, [limit], near))

    def learned(
        self, sent: int, charges: Sequence[Charge], keys: Sequence[bytes], states: Sequence[State | None], now: int
    ) -> Known | None:
        """Remember a refusal, unless it changed something."""
        settled, costs = settled_bill(charges, states, now)
        if settled.allowed or settled.writes:
            self.refusals.forget(keys)
            return None
        return self.refusals.learn(sent, keys, charges, Answer(False, now, settled.outcomes, costs), states)

    def learn(self, sent: int, charges: Sequence[Charge], decided: Decided) -> None:
        """Remember a refusal that changed nothing; else forget what is not so any more."""
        if decided.wrote():
            self.refusals.forget(decided.keys)
        else:
            self.refusals.learn(sent, decided.keys, charges, decided.answer, decided.states)

    def _remembered(self, charges: Sequence[Charge], commit: bool) -> Answer | None:
        """The answer, where a refusal that was told before still stands.

        Raises:
            LimitError: no script can decide this bill; said here, since others may travel with it.
        """
        if len(charges) > MOST_TOGETHER:
            raise LimitError(f"{len(charges)} limits at once; Redis decides at most {MOST_TOGETHER} together")
        for charge in charges:
            form_of(charge.limit)
        if not commit or not self.refusals:
            return None
        return self.refusals.answer([stored_key(charge) for charge in charges], charges)


_families: Final[weakref.WeakValueDictionary[Settings, Family]] = weakref.WeakValueDictionary()


def _family_of(settings: Settings) -> Family:
    found = _families.get(settings)
    return _families.setdefault(settings, Family()) if found is None else found


def _restore(
    kind: type[BaseRedisStore],
    settings: Settings,
    deadline: float,
    refusal_cache: float,
    share: Fraction,
    clock: Clock | None,
) -> BaseRedisStore:
    return kind(settings, deadline=deadline, refusal_cache=refusal_cache, share=share, clock=clock)


def _read_seconds(text: str) -> float:
    if text == "0":
        return 0.0
    try:
        return parse_duration(text) / SECOND
    except QuotaError:
        raise ValueError("expected a duration such as 100ms or 1s") from None


_OPTIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "deadline": _read_seconds,
    "refusal_cache": _read_seconds,
    "share": read_share,
}


def _seconds(name: str, value: object, *, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 3600:
        raise ConfigError(f"{name} is {value!r}; expected seconds from {least:g} to 3600")
    return float(value)
