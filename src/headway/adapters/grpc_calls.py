"""gRPC calls as a ``Guard`` sees them: which are asked for, whose they are, what they cost, and what their end settles.

Nothing here knows a gRPC library or waits: both interceptors share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict, TypeVar, cast
from urllib.parse import unquote

from headway.adapters.asked import FORWARDED, Asked
from headway.adapters.drive import Asking
from headway.adapters.grpc_status import DOMAIN, GrpcAnswer, Metadata, answer
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import Ledger, ResponseFacts
from headway.adapters.sources import AttributeSource
from headway.errors import ConfigError
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.limiter.plan import Cost
from headway.policy.request import RequestFacts

__all__ = ["HEALTH", "CallEnd", "CallGuard", "CallOptions", "GrpcCall", "Running"]

T = TypeVar("T")

HEALTH: Final = tuple(f"/grpc.health.v1.Health/{method}" for method in ("Check", "Watch", "List"))
"""The methods of health probes: exempt unless said otherwise."""


@dataclass(frozen=True, slots=True)
class GrpcCall:
    """One call, as the functions among the options are given it.

    Attributes:
        method: "/package.Service/Method".
        message: the request message; None where the client streams.
        context: gRPC's own servicer context.
    """

    method: str
    message: Any
    context: Any


@dataclass(frozen=True, slots=True)
class CallEnd:
    """What is known of a call when its handler has ended.

    Attributes:
        code: the status code's name, as far as the server tells it: "OK", "NOT_FOUND"; "UNKNOWN" after an exception.
        units: the sum of ``response_cost``; None where there was no response.
        error: what the handler raised, or None.
    """

    code: str
    units: int | None
    error: BaseException | None


class CallOptions(TypedDict, total=False):
    """What can be said of an interceptor, by keyword.

    Functions are given a ``GrpcCall`` unless it says otherwise, and may be async where the server is.

    Attributes:
        attributes: sources by attribute name, besides ``address`` (also ``ip``, ``client_address``) and ``route``, the
            full method: ``by_header("x-team")`` for metadata, or a function.
        account: gives whoever is authenticated, for ``by_account``.
        trusted_proxies: whose forwarded addresses are believed; see ``client_address``.
        skip_if: what it holds true for is neither counted nor refused.
        exempt_paths: methods that are neither counted nor refused; ``HEALTH``.
        only: the methods that are limited, as "/package.Service/Method" or "/package.Service/*"; all.
        cost: units, by limit name if need be, or a function that gives them.
        response_cost: a function of one response message that gives its units; those of a stream add up. ``cost`` is
            charged at first, and settled for what it says; where no response came, ``cost`` stays charged.
        charge_if: a function of ``CallEnd``: the cost is charged at first, and given back where it says False.
        reserve_for: seconds in which the call has to end for these two; later ``cost`` stays charged.
        domain: the service's own name, for ``ErrorInfo``.
    """

    attributes: Mapping[str, AttributeSource]
    account: Callable[[GrpcCall], Any]
    trusted_proxies: str | int | Iterable[str]
    skip_if: Callable[[GrpcCall], Any]
    exempt_paths: Iterable[str]
    only: Iterable[str]
    cost: Cost | Callable[[GrpcCall], Any]
    response_cost: Callable[[Any], int]
    charge_if: Callable[[CallEnd], Any]
    reserve_for: float
    domain: str


class CallGuard:
    """A ``Guard`` over gRPC's calls.

    Args:
        limiter: see ``Guard``.
        where: who asks, for messages.
        asynchronous: the server can await.
        options: see ``CallOptions``.

    Raises:
        TypeError: no limiter, one of the wrong kind, or an unknown option.
        ConfigError: an option that cannot be right.
    """

    def __init__(
        self, limiter: Limiter | AsyncLimiter, options: CallOptions, *, where: str, asynchronous: bool
    ) -> None:
        unknown = sorted(options.keys() - CallOptions.__annotations__.keys())
        if unknown:
            known = ", ".join(sorted(CallOptions.__annotations__))
            raise TypeError(f"{where} takes no {unknown[0]!r}; expected one of {known}")
        given: dict[str, Any] = {"exempt_paths": HEALTH, **options}
        self.price: Callable[[Any], int] | None = given.pop("response_cost", None)
        self.domain: str = given.pop("domain", DOMAIN)
        self._only = _methods(given.pop("only", ()), where)
        if self.price is not None:
            given["actual_cost"] = _units
        self._guard = Guard(limiter, cast(Options, given), where=where, asynchronous=asynchronous)

    def covers(self, method: str) -> bool:
        """Whether calls of this method are limited at all."""
        return not self._only or not self._only.isdisjoint((method, f"{method.rpartition('/')[0]}/*"))

    def ask(self, call: GrpcCall, running: Running) -> Asking[GrpcAnswer | None]:
        """The answer that refuses the call, or None where it may go on; see ``Guard.ask``."""
        refusal = yield from self._guard.ask(call, _asked(call), running.ledger)
        return None if refusal is None else answer(refusal, self.domain)


class Running:
    """One call while it runs: what was decided about it, and what it has cost so far.

    Attributes:
        ledger: the decisions.
    """

    __slots__ = ("_price", "_said", "_units", "ledger")

    def __init__(self, guard: CallGuard) -> None:
        self.ledger = Ledger()
        self._price = guard.price
        self._units: int | None = None
        self._said = False

    def saw(self, response: T) -> T:
        """Count a response message; it is passed through."""
        if self._price is not None:
            self._units = (self._units or 0) + self._price(response)
        return response

    def end(self, code: str, error: BaseException | None = None) -> Asking[None]:
        """Settle what is left to do; see ``Ledger.end``."""
        end: Any = CallEnd(code, self._units, error)  # what a guard settles by is its options' own
        yield from self.ledger.end(cast(ResponseFacts, end))

    def say(self, context: Any) -> None:
        """Put the RateLimit fields among the trailers, beside what the handler has put there.

        Called before the handler and after it. A thread's handler under ``grpc.aio`` cannot be asked what it has put
        there; then its own trailers stand, and ours are lost.
        """
        read = getattr(context, "trailing_metadata", None)
        ours: Metadata = answer(self.ledger.decisions[0].verdict).trailers if self.ledger.decisions else ()
        if not ours or (read is None and self._said):
            return
        self._said = True
        there = [tuple(pair) for pair in (read() if read else None) or ()]
        missing = [pair for pair in ours if pair not in there]
        if missing:
            context.set_trailing_metadata((*there, *missing))


def _units(end: CallEnd) -> int | None:
    """The actual cost; None: as estimated."""
    return end.units


def _asked(call: GrpcCall) -> Asked:
    """The call without gRPC's types; binary metadata are left out."""
    metadata = call.context.invocation_metadata() or ()
    headers = tuple((name, value) for name, value in metadata if isinstance(value, str))
    peer = _peer(call.context.peer())
    forwarded = any(name in FORWARDED for name, _ in headers)
    return Asked(
        "POST", call.method, peer, forwarded, lambda: RequestFacts("POST", call.method, call.method, headers, peer=peer)
    )


def _peer(peer: str) -> str | None:
    """The host of gRPC's "ipv4:192.0.2.1:5678" or "ipv6:%5B2001:db8::1%5D:5678"; None for a Unix socket."""
    kind, _, place = peer.partition(":")
    return unquote(place).rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else None


def _methods(names: Iterable[str], where: str) -> frozenset[str]:
    found = frozenset((names,) if isinstance(names, str) else names)
    for name in found:
        if not (name.startswith("/") and name.count("/") == 2 and "*" not in name.rpartition("/")[0]):
            raise ConfigError(f"{where}: only has {name!r}; expected '/package.Service/Method' or '/package.Service/*'")
    return found
