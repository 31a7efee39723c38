"""Where a web application's attributes come from: sources of ``policy.identity``, and functions of its own request.

The framework's request is what the framework's users call so: an ASGI scope, a WSGI environ, a Request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from headway.adapters.asked import Asked
from headway.adapters.drive import Asking
from headway.errors import ConfigError
from headway.limiter.base import BaseLimiter
from headway.policy.client_address import ClientAddress, client_address
from headway.policy.identity import Identify, Identity, Missing, Source, by_callable, by_method, by_route
from headway.policy.request import RequestFacts

__all__ = ["AttributeSource", "Attributes", "FromRequest", "by_request"]

_ADDRESS: Final = ("address", "ip", "client_address")
"""What the client's address is called unless something else is given under that name."""

_ROUTELESS: Final = frozenset({*_ADDRESS, "method"})
"""Attributes that need no route."""


@dataclass(frozen=True, slots=True)
class FromRequest:
    """A function of the framework's request; made by ``by_request``.

    Attributes:
        read: gives the value, None or an empty text where the request has none; async where the framework is.
        missing: what happens where there is none.
    """

    read: Callable[[Any], Any]
    missing: Missing = Missing.ERROR


AttributeSource = Source | ClientAddress | FromRequest | Callable[[Any], Any]
"""A source such as ``by_header("x-team")``, or a function of the framework's request (``by_request`` without a choice)."""


def by_request(read: Callable[[Any], Any], *, missing: Missing | str = Missing.ERROR) -> FromRequest:
    """An attribute that a function of the framework's request gives.

    Args:
        read: gives the value; async where the framework is. None or an empty text is a missing identity.
        missing: "error", "refuse" or "address"; see ``Missing``.

    Raises:
        ConfigError: another choice.
    """
    choice = by_callable(read, missing=missing).missing  # checks it and says what is accepted
    return FromRequest(read, choice)


class Attributes:
    """Reads the attributes that a limiter asks for out of requests.

    Args:
        limiter: whose limits ask.
        given: sources by attribute name, besides or instead of ``address`` (also ``ip``, ``client_address``),
            ``method`` and ``route``.
        account: gives ``RequestFacts.account`` for ``by_account``.
        trusted_proxies: see ``client_address``.
        where: who asks, for messages.

    Attributes:
        needs_route: some attribute may depend on the route.
        by_route: some attribute is the route, or a parameter of it.

    Raises:
        ConfigError: an attribute that nothing gives, or a source that cannot be called.
    """

    def __init__(
        self,
        limiter: BaseLimiter,
        given: Mapping[str, AttributeSource],
        account: Callable[[Any], Any] | None,
        trusted_proxies: str | int | Iterable[str],
        where: str,
    ) -> None:
        address = client_address(trusted_proxies)
        known: dict[str, AttributeSource] = {
            **dict.fromkeys(_ADDRESS, address),
            "method": by_method(),
            "route": by_route(),
            **given,
        }
        wanted = limiter.plan.attributes
        for name, source in given.items():
            if not callable(source) and not isinstance(source, FromRequest):
                raise ConfigError(
                    f"{source!r}; expected a source such as by_header('x-api-key') or a function", key=name
                )
        for limit in limiter.limits:
            for name in limit.by:
                if name not in known:
                    raise ConfigError(
                        f"{where}: limit {limit.name!r} is keyed by {name!r}, which nothing gives; add it to attributes, "
                        f"such as attributes={{{name!r}: by_header('x-{name.replace('_', '-')}')}}; known: {', '.join(sorted(known))}"
                    )
        # A limit that is chosen, or a limiter's exempt function, may look at attributes that no key is made of.
        names = wanted if limiter._fixed else tuple(dict.fromkeys((*wanted, *known)))
        own: dict[str, FromRequest] = {}
        sources: dict[str, Source | ClientAddress] = {}
        for name in names:
            source = known[name]
            if isinstance(source, Source | ClientAddress):
                sources[name] = source
            else:
                own[name] = source if isinstance(source, FromRequest) else by_request(source)
        self._own = tuple(own.items())
        self._address = next((one for one in known.values() if isinstance(one, ClientAddress)), address)
        self._identify = Identify(sources, self._address) if sources else None
        self.account = account
        self.needs_route = bool({*own, *sources} - _ROUTELESS) or bool(set(given) & {*own, *sources})

        self.by_route = any(
            isinstance(one, Source) and one.label.startswith(("route", "path parameter")) for one in sources.values()
        )

        by_address = account is None and bool(sources) and all(one is address for one in sources.values())
        self._plain = tuple(sources) if by_address and not own else ()
        self._key_of_peer = lru_cache(maxsize=4096)(lambda peer: address.locate(RequestFacts(peer=peer)).key)

    def quick(self, asked: Asked) -> Mapping[str, object] | None:
        """The attributes, where the peer's address is all that is needed; None where ``read`` has to find them."""
        if not self._plain or asked.forwarded:
            return None
        key = self._key_of_peer(asked.peer)
        return dict.fromkeys(self._plain, key)

    def read(self, request: Any, facts: RequestFacts) -> Asking[Identity]:
        """The attributes of one request.

        Raises:
            AttributeMissing: an attribute is missing, and nothing was said of that.
        """
        if self.account is not None:
            facts = replace(facts, account=(yield self.account(request)))
        found = self._identify(facts) if self._identify is not None else Identity({})
        if not self._own:
            return found
        attributes = dict(found.attributes)
        refused = list(found.refused)
        for name, source in self._own:
            value = yield source.read(request)
            reader = Identify({name: Source(f"{name!r}", _constant(value), source.missing)}, self._address)
            one = reader(facts)
            attributes.update(one.attributes)
            refused += one.refused
        return Identity(attributes, tuple(refused))


def _constant(value: object) -> Callable[[RequestFacts], object]:
    return lambda _: value
