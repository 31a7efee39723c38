"""``limited``: a decorator that asks the limiter before each call. Signature and types of the function are kept."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from headway.errors import LimitError
from headway.limiter.plan import Cost

__all__ = ["AttributeSource", "CostSource", "Request", "check_kind", "is_async", "keep", "request_of"]

AttributeSource = str | Callable[[Mapping[str, Any]], object]
"""Where an attribute comes from: the name of a parameter, or a callable of all the call's arguments by name."""

CostSource = Cost | Callable[[Mapping[str, Any]], Cost]
"""A cost, or a callable of all the call's arguments by name."""

Request = Callable[[tuple[Any, ...], dict[str, Any]], tuple[dict[str, object], Cost]]
"""From a call's positional and keyword arguments to attributes and cost."""


def request_of(
    function: Callable[..., Any],
    needed: tuple[str, ...],
    sources: Mapping[str, AttributeSource],
    cost: CostSource,
    *,
    looked_at: tuple[str, ...] = (),
) -> Request:
    """How calls of ``function`` become requests; everything that can be checked is checked here, once.

    Args:
        function: its parameters named like attributes are used as they are.
        needed: the attributes that the limits are keyed by.
        sources: for the others.
        cost: see ``CostSource``.
        looked_at: attributes that are taken from parameters of their names where there are such.

    Raises:
        LimitError: an attribute that neither a parameter nor ``sources`` gives, or a source that names no parameter.
    """
    signature = inspect.signature(function)
    name = getattr(function, "__qualname__", repr(function))
    parameters = signature.parameters
    chosen: dict[str, AttributeSource] = {}
    for attribute in dict.fromkeys((*needed, *sources, *(name for name in looked_at if name in parameters))):
        source = sources.get(attribute, attribute)
        if isinstance(source, str) and source not in parameters:
            raise LimitError(
                f"{name}() has no parameter {source!r} to take the attribute {attribute!r} from; it has: "
                f"{', '.join(parameters) or 'none'}. Give limited({attribute}=…) a parameter's name or a function of the arguments"
            )
        chosen[attribute] = source

    def request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, object], Cost]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        attributes = {
            attribute: given[source] if isinstance(source, str) else source(given)
            for attribute, source in chosen.items()
        }
        return attributes, cost(given) if callable(cost) else cost

    return request


def check_kind(function: Callable[..., Any], *, asynchronous: bool, immediate: bool, holds: bool) -> None:
    """Refuse a function that a limiter of this kind would block or could not wait for, or whose work no call lasts as long as.

    Raises:
        TypeError: names the limiter to use instead.
    """
    name = getattr(function, "__qualname__", repr(function))
    waits = is_async(function)
    if holds and (inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)):
        raise TypeError(
            f"{name}() is a generator, which works after its call has ended, when what a limit of requests at once held "
            "is given back already: take the place inside it, with admitted()"
        )
    if waits and not asynchronous and not immediate:
        raise TypeError(
            f"{name}() is async and this store waits: use AsyncLimiter (a Limiter would block the event loop)"
        )
    if asynchronous and not waits:
        raise TypeError(f"{name}() is not async, so it cannot wait for an AsyncLimiter: use Limiter")


def is_async(function: Callable[..., Any]) -> bool:
    """Calling it gives an awaitable."""
    return inspect.iscoroutinefunction(function)


def keep(wrapper: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """``wrapper`` with the name, docstring, signature and annotations of ``function``."""
    return functools.wraps(function)(wrapper)
