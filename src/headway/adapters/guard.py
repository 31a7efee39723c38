"""``Guard``: a limiter as a web application applies it: to which requests, whose, at what cost, and what comes afterwards.

Every adapter asks one, so they all do the same. Nothing here knows a framework.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypedDict

from headway.adapters.asked import Asked
from headway.adapters.cors import is_preflight
from headway.adapters.drive import Asking
from headway.adapters.ledger import Entry, Ledger, ResponseFacts
from headway.adapters.sources import Attributes, AttributeSource
from headway.core.limit import Algorithm, Limit
from headway.core.outcome import Never
from headway.core.verdict import Verdict
from headway.errors import ConfigError, StoreError
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.limiter.plan import Cost, check_cost
from headway.presentation.dialect import check_dialects
from headway.presentation.fields import DEFAULT_DIALECTS
from headway.stores.memory import MemoryStore
from headway.stores.workers import each_by_itself

__all__ = ["PROBES", "Guard", "Options"]

PROBES: Final = ("/health", "/healthz", "/health/live", "/health/ready", "/live", "/livez", "/ready", "/readyz")
"""Paths that health and readiness probes ask for: exempt from an application-wide guard unless said otherwise."""

_log = logging.getLogger("headway")


class Options(TypedDict, total=False):
    """What can be said of a guard; every adapter takes these by keyword.

    Attributes:
        attributes: sources by attribute name, besides ``address`` (also ``ip``, ``client_address``), ``method`` and
            ``route``: ``by_header("x-team")``, ``by_path_param("id")``, or a function of the framework's request.
        account: a function of the framework's request that gives whoever it has authenticated, for ``by_account``.
        trusted_proxies: whose forwarded addresses are believed; see ``client_address``.
        skip_if: a function of the framework's request; what it holds true for is neither counted nor refused.
        exempt_paths: exact paths, within the application, that are neither counted nor refused; ``PROBES``.
        exempt_static: static files are neither counted nor refused, where the framework tells which they are; True.
        probe_limiter: decides about ``exempt_paths`` instead.
        cost: units, by limit name if need be, or a function of the framework's request that gives them.
        charge_if: a function of ``ResponseFacts``: the cost is charged at first, and given back where it says False.
        actual_cost: a function of ``ResponseFacts``: ``cost`` is charged at first, and settled for what it says.
        reserve_for: seconds in which ``charge_if`` and ``actual_cost`` have to come; later ``cost`` stays charged.
        dialects: in which syntax limits are told; see ``presentation.dialect``.
        locale: the language of refusals where the request asks for none that is known.
    """

    attributes: Mapping[str, AttributeSource]
    account: Callable[[Any], Any]
    trusted_proxies: str | int | Iterable[str]
    skip_if: Callable[[Any], Any]
    exempt_paths: Iterable[str]
    exempt_static: bool
    probe_limiter: Limiter | AsyncLimiter
    cost: Cost | Callable[[Any], Any]
    charge_if: Callable[[ResponseFacts], Any]
    actual_cost: Callable[[ResponseFacts], Any]
    reserve_for: float
    dialects: str | Iterable[str]
    locale: str


_NAMES: Final = frozenset(Options.__annotations__)


class Guard:
    """A limiter, and which requests it is asked about.

    Args:
        limiter: in an asynchronous adapter an ``AsyncLimiter``, or a ``Limiter`` on a memory store; else a ``Limiter``.
        where: who asks, for messages.
        asynchronous: the adapter can await.
        options: see ``Options``.

    Attributes:
        unsettled: how often the actual cost could not be settled: the estimate stayed charged.

    Raises:
        TypeError: no limiter, or one of the wrong kind: names the right one; an unknown option.
        ConfigError: an option that cannot be right, or an attribute that nothing gives.
    """

    def __init__(
        self,
        limiter: Limiter | AsyncLimiter,
        options: Options,
        *,
        where: str,
        asynchronous: bool,
    ) -> None:
        _check_limiter(limiter, where, asynchronous)
        unknown = sorted(options.keys() - _NAMES)
        if unknown:
            raise TypeError(f"{where} takes no {unknown[0]!r}; expected one of {', '.join(sorted(_NAMES))}")
        self.limiter = limiter
        self.where = where
        self.attributes = Attributes(
            limiter,
            options.get("attributes") or {},
            options.get("account"),
            options.get("trusted_proxies", ()),
            where,
        )
        self.skip_if = _function(options.get("skip_if"), "skip_if", where)
        self.charge_if = _function(options.get("charge_if"), "charge_if", where)
        self.actual_cost = _function(options.get("actual_cost"), "actual_cost", where)
        if self.charge_if and self.actual_cost:
            raise ConfigError(f"{where}: charge_if and actual_cost both say what is charged; give one of them")
        self.reserve_for = options.get("reserve_for", 60.0)
        self.cost = options.get("cost", 1)
        if not callable(self.cost):
            for units in self.cost.values() if isinstance(self.cost, Mapping) else (self.cost,):
                check_cost(units)
        dialects = check_dialects(options.get("dialects", DEFAULT_DIALECTS))
        self.dialects = DEFAULT_DIALECTS if dialects == DEFAULT_DIALECTS else dialects  # which has a short way
        self.locale = options.get("locale", "en")
        self._exempt_paths = _paths(options.get("exempt_paths", PROBES), where)
        self.exempt_static = options.get("exempt_static", True)
        self._probes: Guard | None = None
        probe_limiter = options.get("probe_limiter")
        if probe_limiter is not None:
            own: Options = {**options, "exempt_paths": ()}
            own.pop("probe_limiter")
            self._probes = Guard(probe_limiter, own, where=f"{where}, probe_limiter", asynchronous=asynchronous)
        self.unsettled = 0
        self._asynchronous = asynchronous
        self._reserves = self.charge_if is not None or self.actual_cost is not None
        self._holds = limiter.plan.holds
        self._queues = any(limit.algorithm is Algorithm.LEAKY_BUCKET_QUEUE for limit in limiter.limits)
        self._told_away = False
        if limiter._memory is not None and (warning := each_by_itself()) is not None:
            _warn_once(warning)

    @property
    def settles(self) -> bool:
        """Something is left to do when a response has been sent."""
        return self._reserves or self._holds

    @property
    def needs_route(self) -> bool:
        """The route, its parameters or the query may decide: the adapter finds them before it asks."""
        return self.attributes.needs_route or (self._probes is not None and self._probes.needs_route)

    def ask(self, request: Any, asked: Asked, ledger: Ledger, *, cost: Cost | None = None) -> Asking[Verdict | None]:
        """Decide about a request: the verdict that refuses it, or None where it may go on.

        Args:
            request: the framework's own.
            asked: the same request.
            ledger: the request's.
            cost: instead of the option's.

        Raises:
            AttributeMissing: see ``Attributes.read``. And what ``Limiter.hit`` raises.
        """
        if self._exempt_paths and _path(asked.path) in self._exempt_paths:
            return (yield from self._probes.ask(request, asked, ledger)) if self._probes is not None else None
        if asked.method == "OPTIONS" and is_preflight({name.lower() for name, _ in asked.facts.headers}):
            return None
        if self.skip_if is not None and (yield self.skip_if(request)):
            return None
        limiter = self.limiter
        if ledger.refusal is not None or (ledger.entries and ledger.asked(limiter)):
            return ledger.refusal
        attributes = self.attributes.quick(asked)
        if attributes is None:
            identity = yield from self.attributes.read(request, asked.facts)
            if identity.refused:
                yield from ledger.take_back()
                return ledger.refuse(_unidentified(identity.refused), self)
            attributes = identity.attributes
        if cost is None:
            cost = (yield self.cost(request)) if callable(self.cost) else self.cost
        if self._reserves:
            reservation = yield limiter.reserve(attributes, cost=cost, ttl=self.reserve_for)
            entry = Entry(self, limiter, reservation.decision, attributes, reservation, reservation.allowed)
        else:
            decision = yield limiter.hit(attributes, cost=cost)
            entry = Entry(self, limiter, decision, attributes, None, self._holds and decision.allowed)
        if not entry.decision.allowed:
            yield from ledger.take_back()
            refusal = ledger.refuse(entry.decision.verdict, self)
            ledger.entries.append(entry)
            return refusal
        ledger.entries.append(entry)
        if self._queues:
            yield from self._queue(entry)
        return None

    @staticmethod
    def skipped() -> Decision:
        """The decision about what nobody is asked about: admitted, without a limit."""
        return Decision.of(Verdict((), (), True, time.time_ns()))

    def give_back(self, entry: Entry) -> Asking[bool]:
        """Undo a charge, as far as leaves the limits as if it had not been made; whether anything was given back.

        A store that is away is only noted.
        """
        entry.open = False
        try:
            given: bool = yield (
                entry.limiter.refund(entry.decision)  # type: ignore[attr-defined]  # both kinds have it
                if entry.reservation is None
                else entry.reservation.cancel()
            )
        except StoreError as error:
            self._note(error)
            return False
        return given

    def settle(self, entry: Entry, response: ResponseFacts) -> Asking[None]:
        """What is left to do when the response has been sent. Nothing that goes wrong here reaches the client."""
        entry.open = False
        try:
            settled = yield from self._settle(entry, response)
        except Exception as error:  # the response is out: what is left is to say so
            self._note(error)
        else:
            self._told_away = False
            if not settled and entry.decision.changes(give_back=False):
                self.unsettled += 1
                _log.warning(
                    "%s: a response took longer than reserve_for=%g s, so its estimate stays charged",
                    self.where,
                    self.reserve_for,
                )

    def _settle(self, entry: Entry, response: ResponseFacts) -> Asking[bool]:
        reservation = entry.reservation
        if reservation is None:
            yield entry.limiter.release(entry.decision)  # type: ignore[attr-defined]  # both kinds have it
            return True
        if self.charge_if is not None:
            charged = yield self.charge_if(response)
            settled: bool = yield reservation.commit() if charged else reservation.cancel()
            return settled
        assert self.actual_cost is not None  # noqa: S101  # there is a reservation
        actual = yield self.actual_cost(response)
        settled = yield reservation.commit(actual)
        return settled

    def _queue(self, entry: Entry) -> Asking[None]:
        """Let an admitted request's delay pass (leaky-bucket-queue); one that is cancelled in it gives its units back."""
        delay = entry.decision.verdict.delay
        if not delay:
            return
        timer = self.limiter._timer  # the one that tests replace
        try:
            if self._asynchronous:
                import asyncio

                yield timer.pause_async(asyncio.Event(), delay)
            else:
                import threading

                timer.pause(threading.Event(), delay)
        except BaseException:
            yield from self.give_back(entry)
            raise

    def _note(self, error: Exception) -> None:
        """Count what could not be settled; an outage is logged once, a mistake each time."""
        self.unsettled += 1
        if not isinstance(error, StoreError):
            _log.error("%s: the actual cost could not be settled", self.where, exc_info=error)
        elif not self._told_away:
            self._told_away = True
            _log.warning("%s: the store is away, so estimates stay charged: %s", self.where, error)


def _check_limiter(limiter: object, where: str, asynchronous: bool) -> None:
    if not isinstance(limiter, Limiter | AsyncLimiter):
        expected = "AsyncLimiter(Limit(…), …)" if asynchronous else "Limiter(Limit(…), …)"
        raise TypeError(f"{where}: {limiter!r} is no limiter; expected {expected}")
    if not asynchronous and isinstance(limiter, AsyncLimiter):
        raise TypeError(f"{where} cannot await an AsyncLimiter: use Limiter")
    if asynchronous and isinstance(limiter, Limiter) and not isinstance(limiter.store, MemoryStore):
        raise TypeError(f"{where}: this Limiter's store waits: use AsyncLimiter (a Limiter would block the event loop)")


@cache
def _warn_once(warning: str) -> None:
    _log.warning("%s", warning)


def _function(given: Any, name: str, where: str) -> Callable[[Any], Any] | None:
    if given is not None and not callable(given):
        raise ConfigError(f"{where}: {name} is {given!r}; expected a function")
    function: Callable[[Any], Any] | None = given
    return function


def _paths(given: Iterable[str], where: str) -> frozenset[str]:
    paths = (given,) if isinstance(given, str) else tuple(given)
    for path in paths:
        if not path.startswith("/"):
            raise ConfigError(f"{where}: exempt_paths has {path!r}; expected a path such as '/health'")
    return frozenset(_path(path) for path in paths)


def _path(path: str) -> str:
    """A path without one slash at its end: the two are one page."""
    return path[:-1] if len(path) > 1 and path[-1] == "/" else path


def _unidentified(names: tuple[str, ...]) -> Verdict:
    """The refusal of a request that does not say who it is: as of a limit that admits nothing."""
    said = " and ".join(name.replace("_", " ") for name in names)
    limit = Limit("unidentified", "0 per day", by=names, text=f"This request does not say its {said}.")
    return Verdict((limit,), (Never(0, 0, 0, 0),), False, time.time_ns(), None, (1,))
