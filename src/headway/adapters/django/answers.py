"""Django's requests as facts, and answers as Django's responses. It decides nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from django.conf import settings  # type: ignore[import-untyped]
from django.http import HttpResponse  # type: ignore[import-untyped]
from django.urls import Resolver404, resolve  # type: ignore[import-untyped]

from headway.adapters import routes, wsgi
from headway.adapters.asked import Asked
from headway.adapters.cors import ORIGIN
from headway.adapters.django._asgiref import async_to_sync
from headway.adapters.drive import drive, drive_async
from headway.adapters.guard import Guard
from headway.adapters.ledger import Ledger, ResponseFacts, merged_fields
from headway.adapters.routes import NOWHERE, Place

__all__ = [
    "NOWHERE",
    "Place",
    "add_fields",
    "answer",
    "asked_of",
    "has_middleware",
    "merged_fields",
    "place_of",
    "response_facts",
    "settle_when_closed",
]


def asked_of(request: Any, place: Place = NOWHERE) -> Asked:
    """A request as a guard looks at it."""
    return wsgi.asked_of(request.META, place, path=request.path_info)


def place_of(request: Any, guard: Guard) -> Place:
    """Where a request goes, if anybody asks."""
    prefix = settings.STATIC_URL or ""
    if guard.exempt_static and len(prefix) > 1 and request.path.startswith(prefix):
        return Place(static=True)
    if not (guard.needs_route or routes.any_exempt):
        return NOWHERE
    try:
        match = resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return NOWHERE
    return Place(f"/{match.route}", match.kwargs, routes.is_exempt(match.func))


def answer(request: Any, ledger: Ledger) -> Any:
    """The whole answer to a refused request."""
    found = ledger.answer(wsgi.facts_of(request.META))
    response = HttpResponse(found.body, status=found.status)
    for name, value in found.headers:
        response[name] = value
    return response


def add_fields(request: Any, response: Any, ledger: Ledger) -> None:
    """The ledger's fields, on the application's answer."""
    asked = f"HTTP_{ORIGIN.upper()}" in request.META
    for name, value in merged_fields(list(response.items()), ledger, asked=asked):
        response[name] = value


def response_facts(response: Any, size: int | None = None) -> ResponseFacts:
    """What is known of an answer."""
    sent = len(response.content) if size is None else size
    return ResponseFacts(response.status_code, tuple(response.items()), sent)


def settle_when_closed(response: Any, ledger: Ledger, *, asynchronous: bool) -> None:
    """Settle for what was sent of a streaming response, when Django closes it."""
    sent = 0
    inner = response.streaming_content

    def counted() -> Iterator[bytes]:
        nonlocal sent
        for part in inner:
            sent += len(part)
            yield part

    async def counted_async() -> AsyncIterator[bytes]:
        nonlocal sent
        async for part in inner:
            sent += len(part)
            yield part

    response.streaming_content = counted_async() if response.is_async else counted()
    close: Callable[[], None] = response.close

    def closing() -> None:
        try:
            close()
        finally:
            end = ledger.end(response_facts(response, sent))
            if asynchronous:
                async_to_sync(drive_async)(end)  # Django closes in a thread
            else:
                drive(end)

    response.close = closing


def has_middleware() -> bool:
    """Some middleware of ours is in the settings, and settles."""
    return any("headway.adapters.django" in name for name in settings.MIDDLEWARE)
