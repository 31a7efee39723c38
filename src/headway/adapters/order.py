"""The order of decorators: a limit above the route decorator would never be asked, so it is found and said at the start."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from headway.adapters.routes import unwrapped
from headway.errors import ConfigError

__all__ = ["check_order", "decorates", "late", "remember"]

_LIMITED_BY: Final = "__headway_limited_by__"


def decorates(function: Callable[..., Any]) -> bool:
    """The caller's caller stands above ``function`` as a decorator; a call elsewhere may mean to limit only some of its uses.

    A decorator runs at its own line, and a function's code begins at its first decorator's.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    frame = sys._getframe(2)
    if code is None or frame.f_code.co_filename != code.co_filename:
        return False
    last = max(line for _, _, line in code.co_lines() if line is not None)
    return bool(code.co_firstlineno <= frame.f_lineno <= last)


def remember(function: Callable[..., Any], limited: Callable[..., Any]) -> None:
    """Note that ``limited`` took the place of ``function``: whoever has registered the latter came too early."""
    setattr(function, _LIMITED_BY, (function, limited))


def check_order(handlers: Iterable[Any]) -> None:
    """Refuse an application that registered a function whose limit came too late.

    Raises:
        ConfigError: names the function and the right order.
    """
    registered = list(handlers)
    known = {id(one) for handler in registered for one in unwrapped(handler)}
    for handler in registered:
        function, limited = getattr(handler, _LIMITED_BY, (None, None))
        if function is handler and id(limited) not in known:
            raise late(function)


def late(function: Any) -> ConfigError:
    """What is said of a function that was registered before it was limited."""
    name = f"{function.__module__}.{function.__qualname__}"
    return ConfigError(
        f"{name}() was registered as a route before it was limited, so its limit would never be asked: "
        "put the limit below the route decorator, next to the function"
    )
