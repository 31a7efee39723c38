"""Django's middleware, for synchronous and asynchronous servers: it carries what ``HEADWAY`` says to every request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpResponse  # type: ignore[import-untyped]

from headway.adapters.django import answers
from headway.adapters.django._asgiref import iscoroutinefunction, markcoroutinefunction
from headway.adapters.django.configuration import configured_guard
from headway.adapters.drive import Asking, drive, drive_async
from headway.adapters.ledger import LEDGER, Ledger
from headway.errors import RateLimited

__all__ = ["RateLimitMiddleware"]

_RAISED: Final = "headway.raised"


class RateLimitMiddleware:
    """Asks the limiter of ``settings.HEADWAY`` about every request.

    Within it, everything that headway decides about a request becomes one set of fields, and a ``RateLimited`` that a view
    raises becomes the refusal's answer.

    Raises:
        ConfigError: the settings cannot be right; ``manage.py check`` says the same.
        TypeError: a ``LIMITER`` of the wrong kind for this server.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response
        self._asynchronous: bool = iscoroutinefunction(get_response)
        self.guard = configured_guard(self._asynchronous)
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        """Serve one request."""
        if self._asynchronous:
            return self._serve_async(request)
        ledger, writes = _open(request)
        if drive(self._ask(request, ledger)):
            return answers.answer(request, ledger)
        response = self.get_response(request)
        return drive(self._finish(request, response, ledger)) if writes else response

    async def _serve_async(self, request: Any) -> Any:
        ledger, writes = _open(request)
        if await drive_async(self._ask(request, ledger)):
            return answers.answer(request, ledger)
        response = await self.get_response(request)
        return await drive_async(self._finish(request, response, ledger)) if writes else response

    def process_exception(self, request: Any, exception: BaseException) -> Any:
        """A view raised a refusal: what it is answered is made when the middleware within have seen it."""
        if not isinstance(exception, RateLimited):
            return None
        request.META[_RAISED] = exception
        return HttpResponse(status=429)

    def _ask(self, request: Any, ledger: Ledger) -> Asking[bool]:
        """Whether it is refused."""
        guard = self.guard
        place = answers.place_of(request, guard)
        if place.exempt or (place.static and guard.exempt_static):
            return False
        refusal = yield from guard.ask(request, answers.asked_of(request, place), ledger)
        return refusal is not None

    def _finish(self, request: Any, response: Any, ledger: Ledger) -> Asking[Any]:
        """The answer as it goes out."""
        raised: RateLimited | None = request.META.pop(_RAISED, None)
        if raised is not None:
            yield from ledger.raised(raised)
            response.close()
            response = answers.answer(request, ledger)
        answers.add_fields(request, response, ledger)
        if ledger.unsettled:
            if response.streaming:
                answers.settle_when_closed(response, ledger, asynchronous=self._asynchronous)
            else:
                yield from ledger.end(answers.response_facts(response))
        return response


def _open(request: Any) -> tuple[Ledger, bool]:
    """The request's ledger, and whether it is ours to write from."""
    found: Ledger | None = request.META.get(LEDGER)
    if found is not None:
        return found, False
    made = request.META[LEDGER] = Ledger()
    return made, True
