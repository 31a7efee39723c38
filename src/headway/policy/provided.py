"""``ProvidedLimit``: quotas that are kept elsewhere, such as in the application's database, asked for and remembered."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from headway.core.key import Key, key_part
from headway.core.limit import Limit
from headway.core.quota import Quota
from headway.errors import AttributeMissing, LimitError
from headway.policy.asking import Awaited, Failed, Following, Question, Told
from headway.policy.choice import Ask, Provider
from headway.policy.matching import wrong_attribute
from headway.policy.tiers import model_of
from headway.policy.variants import shown, variant

__all__ = ["ProvidedLimit", "providers_of"]

_SECOND: Final = 1_000_000_000
_ASK_AGAIN_NS: Final = _SECOND
"""After a failure the provider is left alone for this long, or as long as an answer counts if that is less."""

_GIVEN_UP_AFTER: Final = 10
"""Times as long as a request waits: then a question that cannot be cancelled is asked again by somebody else."""

_MOST_QUOTAS: Final = 1_000
"""Different answers whose limits are kept ready."""

_ON_ERROR: Final = ("last", "default", "raise")


class _Known(NamedTuple):
    """What was last said of one key, or stands in for it: the limit it leads to, and when to ask again (monotonic ns)."""

    limit: Limit | None
    until: int


class ProvidedLimit:
    """A limit whose quota a function of yours says: ``ProvidedLimit("api", quota_of, by="account", default="60/min")``.

    The function gets a mapping of the attributes in ``reads`` and nothing else, so that an answer holds for whoever has
    the same ones; many requests that need the same answer at once ask it once. It answers with a quota, its text, "block", "unlimited", or None for the default. It may be ``async``
    under ``AsyncLimiter``; one that is not and that waits blocks the event loop.

    Args:
        name: the limit's.
        provider: the function.
        by: see ``Limit``.
        default: the quota of whoever the provider says nothing of; its algorithm is the one all answers are counted by.
        reads: the attributes it is asked with; default: those in ``by``.
        cache_seconds: how long an answer counts.
        answer_seconds: how long a request waits for an answer; what takes longer is a failure. An ``async`` function is
            cancelled then; one that is not cannot be, so whoever called it waits to its end, and all others no longer.
        cache_entries: how many answers are remembered, the latest used; at least 1.
        on_error: what counts when the provider raises or answers what is no quota: "last", the last answer for the
            same attributes while it is remembered, else the default; "default"; or "raise". A second later it is asked
            again.
        clock: nanoseconds that never go back; default: the monotonic clock.
        options: the other arguments of ``Limit``.

    Attributes:
        calls: how often the provider was asked.
        failures: how often it raised or answered what is no quota.

    Raises:
        LimitError: an option that cannot be right, or what ``Limit`` raises.
        QuotaError: the default's text.
    """

    def __init__(
        self,
        name: str,
        provider: Provider,
        by: str | Iterable[str] = (),
        *,
        default: Quota | str,
        reads: str | Iterable[str] | None = None,
        cache_seconds: float = 30.0,
        answer_seconds: float = 5.0,
        cache_entries: int = 10_000,
        on_error: str = "last",
        clock: Callable[[], int] = time.monotonic_ns,
        **options: Any,
    ) -> None:
        self.name = name
        self._model = model_of(name, {"default": default}, by, kind="", **options)
        self._default = variant(self._model, default, "default")
        self._provider = provider
        self._reads = self._model.by if reads is None else (reads,) if isinstance(reads, str) else tuple(reads)
        for attribute in self._reads:
            if problem := wrong_attribute(attribute):
                raise LimitError(f"limit {name!r}: reads {problem}")
        if not callable(provider):
            raise LimitError(f"limit {name!r}: provider is {provider!r}; expected a function of a request's attributes")
        if not _is_number(cache_seconds) or not 0 <= cache_seconds <= 1e9:
            raise LimitError(f"limit {name!r}: cache_seconds is {cache_seconds!r}; expected seconds from 0 to 1e9")
        if not _is_number(answer_seconds) or not 0 < answer_seconds <= 3600:
            raise LimitError(f"limit {name!r}: answer_seconds is {answer_seconds!r}; expected seconds up to 3600")
        if type(cache_entries) is not int or cache_entries < 1:
            raise LimitError(f"limit {name!r}: cache_entries is {cache_entries!r}; expected a whole number from 1")
        if on_error not in _ON_ERROR:
            raise LimitError(f"limit {name!r}: on_error is {on_error!r}; expected one of {', '.join(_ON_ERROR)}")
        self._at_most = answer_seconds
        self._cache_ns = round(cache_seconds * _SECOND)
        self._most = cache_entries
        self._on_error = on_error
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        """As if nobody had been asked yet."""
        self._known: OrderedDict[tuple[Key, ...], _Known] = OrderedDict()
        self._asking: dict[tuple[Key, ...], Question] = {}
        self._made: dict[Quota | str, Limit | None] = {}
        self._lock = threading.Lock()
        self._away = False
        self.calls = 0
        self.failures = 0
        _alive.add(self)

    def __getstate__(self) -> dict[str, Any]:
        """A pickled copy remembers no answers: in its process somebody else may be asked."""
        begun = ("_known", "_asking", "_made", "_lock", "_away", "calls", "failures")
        return {name: value for name, value in vars(self).items() if name not in begun}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """See ``Choice.limits``: the default's."""
        return (self._model,)

    @property
    def attributes(self) -> tuple[str, ...]:
        """See ``Choice.attributes``."""
        return self._reads

    def choose(self, attributes: Mapping[str, object]) -> Limit | Ask | None:
        """The limit of a remembered answer, or that the provider has to be asked.

        Raises:
            AttributeMissing: an attribute that it reads is not there.
            AttributeUnusable: a value that cannot be part of a key.
        """
        key = self._key(attributes)
        with self._lock:
            known = self._known.get(key)
            if known is not None and self._clock() < known.until:
                self._known.move_to_end(key)
                return known.limit
        return Ask(lambda attributes: self._ask(key, attributes), _limit_of)

    def forget(self, attributes: Mapping[str, object] | None = None, /, **named: object) -> None:
        """Ask anew at the next request: for these attributes, or without any, for all."""
        with self._lock:
            every = attributes is None and not named
            keys = {*self._known, *self._asking} if every else {self._key({**(attributes or {}), **named})}
            for key in keys:
                self._known.pop(key, None)
                question = self._asking.pop(key, None)
                if question is not None:
                    question.outdated = True  # its answer may be from before

    def begin_anew(self, clock: Callable[[], int]) -> dict[str, Any]:
        """Go on by another clock as if nobody had been asked yet; for test tools. What ``go_back`` takes."""
        before = dict(vars(self))
        self._begin()
        self._clock = clock
        return before

    def go_back(self, before: dict[str, Any]) -> None:
        """Go on as it was before ``begin_anew``."""
        vars(self).update(before)

    def __len__(self) -> int:
        """How many answers are remembered."""
        return len(self._known)

    def __bool__(self) -> bool:
        """A limit is there, however many answers are remembered."""
        return True

    def __str__(self) -> str:
        reads = f" by {' and '.join(self._reads)}" if self._reads else ""
        return f"asked for{reads}; default {shown(self._default)}"

    def _key(self, attributes: Mapping[str, object]) -> tuple[Key, ...]:
        for name in self._reads:
            if name not in attributes:
                raise AttributeMissing(name, self.name, tuple(attributes), need="takes its quota from")
        return tuple(key_part(name, attributes[name]) for name in self._reads)

    def _ask(self, key: tuple[Key, ...], attributes: Mapping[str, object]) -> Any:
        """What the provider's answer leads to, or something that awaits it; many requests of one key ask it once."""
        while True:
            with self._lock:
                question = self._asking.get(key)
                mine = question is None or not question.helps(_GIVEN_UP_AFTER * self._at_most)
                if question is None or mine:
                    question = Question()
                    self.calls += 1
                    if self._cache_ns:
                        self._asking[key] = question
            if mine:
                return self._asked(key, question, attributes)
            if question.late or not question.known.wait(self._at_most):
                question.late = True
                return self._failed(key, TimeoutError(f"no answer within {self._at_most:g} s"))
            if question.awaited:
                return Following(question, lambda: self._ask(key, attributes))
            if question.told is not None:
                return question.told

    def _asked(self, key: tuple[Key, ...], question: Question, attributes: Mapping[str, object]) -> Any:
        try:
            answer = self._provider({name: attributes[name] for name in self._reads})
        except Exception as error:
            answer = Failed(error)
        except BaseException:
            self._settle(key, question, None)
            raise
        if hasattr(answer, "__await__"):
            question.is_awaited()
            return Awaited(answer, lambda found: self._settle(key, question, found), self._at_most)
        return self._settle(key, question, (answer,))

    def _settle(self, key: tuple[Key, ...], question: Question, answer: tuple[object] | None) -> Told | None:
        """Tell all who ask what came of a question; None: nothing, so somebody else has to ask."""
        told = None if answer is None else self._told(key, question, answer[0])
        with self._lock:
            if self._asking.get(key) is question:
                del self._asking[key]
        question.settle(told)
        return told

    def _told(self, key: tuple[Key, ...], question: Question, answer: object) -> Told:
        """Remember an answer, or what stands in for it."""
        error = answer.error if isinstance(answer, Failed) else None
        limit = self._default
        if error is None:
            try:
                limit = self._read(answer)
            except (LimitError, ValueError, TypeError) as wrong:
                error = wrong
        if error is not None:
            return self._failed(key, error)
        with self._lock:
            self._away = False
            if not question.outdated:
                self._remember(key, _Known(limit, self._clock() + self._cache_ns))
        return Told(limit)

    def _read(self, answer: object) -> Limit | None:
        if answer is None:
            return self._default
        if not isinstance(answer, str | Quota):
            raise TypeError(f"the provider said {answer!r}; expected a quota, its text, 'block', 'unlimited' or None")
        if answer not in self._made:
            if len(self._made) >= _MOST_QUOTAS:
                self._made.clear()
            self._made[answer] = variant(self._model, answer, "the provider's answer")
        return self._made[answer]

    def _failed(self, key: tuple[Key, ...], error: Exception) -> Told:
        """What counts instead of an answer; the first failure of an outage is logged."""
        with self._lock:
            self.failures += 1
            first, self._away = not self._away, True
            last = self._known.get(key)
            limit = self._default if last is None or self._on_error == "default" else last.limit
            if self._on_error != "raise":
                self._remember(key, _Known(limit, self._clock() + min(self._cache_ns, _ASK_AGAIN_NS)))
        if first:
            import logging  # slow to import, and a provider seldom fails

            logging.getLogger("headway").warning(
                "limit %s: the quota provider failed (%s: %s); on_error = %s decides until it answers again",
                self.name, type(error).__name__, error, self._on_error,
            )  # fmt: skip
        return Told(None, error) if self._on_error == "raise" else Told(limit)

    def _remember(self, key: tuple[Key, ...], known: _Known) -> None:
        self._known[key] = known
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def providers_of(part: Any) -> Iterator[ProvidedLimit]:
    """Those that a limit is, or wraps (a condition, overrides)."""
    while part is not None:
        if isinstance(part, ProvidedLimit):
            yield part
        part = getattr(part, "limit", None)


def _limit_of(told: Told) -> Limit | None:
    if told.error is not None:
        raise told.error
    return told.limit


_alive: WeakSet[ProvidedLimit] = WeakSet()


def _after_fork_in_child() -> None:
    """Another thread may have held a lock at the moment of the fork; in the child nobody does."""
    for provided in _alive:
        provided._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
