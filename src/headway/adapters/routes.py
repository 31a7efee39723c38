"""Which route a request will match, asked before the application routes it.

Frameworks tell the route only afterwards, or not at all, so their own tables are asked: Starlette's and FastAPI's
``routes``, Flask's and Quart's ``url_map``, and what Litestar has put into the scope. No framework is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

__all__ = [
    "NOWHERE",
    "Place",
    "candidates",
    "endpoints",
    "exempt",
    "is_exempt",
    "may_be_exempt",
    "place_of",
    "place_on_map",
    "says_place",
    "table_in",
    "table_of",
    "unwrapped",
]

H = TypeVar("H")

_FULL: Final = 2
"""The value of Starlette's ``Match.FULL``; ``PARTIAL``, the path without the method, is 1."""

_EXEMPT: Final = "__headway_exempt__"
_LITESTAR: Final = "path_template"

any_exempt = False
"""Some function is exempt, so routes have to be found although no attribute needs them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request goes.

    Attributes:
        route: the template, or None where no route matches.
        path_params: the values in it.
        exempt: the handler is exempt from limits.
        static: it serves files that are the same for everybody.
    """

    route: str | None = None
    path_params: Mapping[str, object] = field(default_factory=dict)
    exempt: bool = False
    static: bool = False


NOWHERE: Final = Place()
"""No route matches, or nobody can tell."""


def exempt(handler: H) -> H:
    """Exempt a handler (a function, or a class of them) from every limit; ``@exempt`` above or below other decorators.

    What it wraps is marked too, and decorators that use ``functools.wraps`` hand the mark on. A method of an object is
    exempt for every object of its class.

    Raises:
        TypeError: something that cannot be marked, such as a built-in function.
    """
    global any_exempt
    for one in unwrapped(handler):
        marked = getattr(one, "__func__", one)  # a bound method is made anew each time it is asked for
        try:
            setattr(marked, _EXEMPT, True)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"exempt cannot mark {one!r}; expected a function, a method or a class, such as a function that calls it"
            ) from error
    any_exempt = True
    return handler


def is_exempt(handler: object) -> bool:
    """The handler, or something it wraps, is exempt."""
    return any(getattr(one, _EXEMPT, False) for one in unwrapped(handler))


def unwrapped(handler: Any) -> Iterable[Any]:
    """The handler, and what it wraps, from the outside."""
    seen = 0
    while handler is not None and seen < 100:
        yield handler
        handler, seen = getattr(handler, "__wrapped__", None), seen + 1


def table_of(app: Any) -> Any:
    """The application that has the routes: ``app``, what its middleware wraps, or whose method it is; None for nobody."""
    for _ in range(100):
        if hasattr(app, "url_map") or _has_routes(app):
            return app
        app = getattr(app, "__self__", None) or getattr(app, "app", None)
        if app is None:
            return None
    return None


def table_in(scope: Mapping[str, Any]) -> Any:
    """The application that the scope says it is in; None where it says none that has routes."""
    app = scope.get("app")
    return app if _has_routes(app) else None


def says_place(scope: Mapping[str, Any]) -> bool:
    """The framework has routed already, and says so (Litestar, whose middleware runs after routing)."""
    return _LITESTAR in scope


def place_of(table: Any, scope: Mapping[str, Any]) -> Place:
    """Where an ASGI scope goes."""
    if says_place(scope):
        handler = getattr(scope.get("route_handler"), "fn", None)
        return Place(scope[_LITESTAR], scope.get("path_params") or {}, is_exempt(handler))
    table = table_in(scope) or table
    if table is None:
        return NOWHERE
    if hasattr(table, "url_map"):
        root = scope.get("root_path", "")
        path = scope["path"].removeprefix(root)
        method = scope.get("method", "GET")
        return place_on_map(table, path, method, websocket=scope["type"] == "websocket")
    return _among(table.routes, scope, "") or NOWHERE


def place_on_map(app: Any, path: str, method: str, *, websocket: bool = False) -> Place:
    """Where a request goes by Werkzeug's map, which Flask and Quart use."""
    from headway.adapters._werkzeug import matched  # whoever has a map has it

    found = matched(app, path, method, websocket=websocket)
    if found is None:
        return NOWHERE
    rule, arguments = found
    exempt = is_exempt(app.view_functions.get(rule.endpoint))
    return Place(rule.rule, arguments, exempt, rule.endpoint.rpartition(".")[2] == "static")


def endpoints(routes: Iterable[Any]) -> Iterable[Any]:
    """The handlers of a table in Starlette's shape, those of mounted applications too."""
    for route in candidates(routes):
        if hasattr(route, "endpoint") or hasattr(route, "app"):
            yield getattr(route, "endpoint", None) or route.app
        yield from endpoints(getattr(route, "routes", None) or ())


def may_be_exempt(table: Any) -> bool:
    """Some handler of the application is exempt, or serves static files: its routes have to be asked."""
    if any_exempt or hasattr(table, "url_map"):
        return True
    return table is not None and any(_serves_files(handler) for handler in endpoints(table.routes))


def _has_routes(app: Any) -> bool:
    found = getattr(app, "routes", None)
    return isinstance(found, list) and all(hasattr(route, "matches") for route in found)


def _serves_files(handler: object) -> bool:
    return type(handler).__name__ == "StaticFiles"


def _among(routes: Iterable[Any], scope: Mapping[str, Any], before: str) -> Place | None:
    """The first route that matches wholly, else the first whose path does."""
    partly: Place | None = None
    for route in candidates(routes):
        match, found = route.matches(scope)
        if not match.value:
            continue
        inner = getattr(route, "routes", None)
        template = f"{before}{getattr(route, 'path_format', None) or getattr(route, 'path', '')}"
        if inner:  # a mount, whose own template ends with what its routes match
            prefix = f"{before}{getattr(route, 'path', '')}"
            return _among(inner, {**scope, **found}, prefix)
        handler = found.get("endpoint")
        place = Place(template, found.get("path_params") or {}, is_exempt(handler), _serves_files(handler))
        if match.value == _FULL:
            return place
        partly = partly or place
    return partly


def candidates(routes: Iterable[Any]) -> Iterable[Any]:
    """The routes, with those of routers that FastAPI includes without copying them."""
    for route in routes:
        inner = getattr(route, "effective_candidates", None)
        if inner is not None:
            yield from candidates(inner())
        else:
            yield getattr(route, "starlette_route", None) or route
