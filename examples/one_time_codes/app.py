"""The application: two addresses for people and for programs alike, ``POST /codes`` and ``POST /codes/check``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.one_time_codes.codes import Codes
from examples.one_time_codes.limits import COSTS, guessing, prefix_of, read_phone, sending
from examples.one_time_codes.page import SCRIPT, SECURITY, STYLE, Note, page
from headway import Decision
from headway.policy.client_address import client_address
from headway.policy.request import RequestFacts
from headway.presentation.response import respond
from headway.stores.base import AsyncStore

Send = Callable[[str, str, str], None]
"""Sends: phone, code, channel. Raises where it could not."""

_log = logging.getLogger(__name__)

_LONGEST_BODY = 2_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the application is made of.

    Attributes:
        store: where the limits' counters live: a store or a URL.
        codes: the database of open codes.
        secret_key: at least 16 bytes, that phones are hashed with.
        now: seconds since 1970.
        send: the provider.
        zone: the time zone whose midnight ends the day.
        daily: what may be sent to all phones in a day, in units of one SMS.
        countries: where codes are sent to at all.
        trusted_proxies: see ``headway.policy.client_address``.
    """

    store: AsyncStore | str
    codes: Path
    secret_key: bytes
    now: Callable[[], float]
    send: Send
    zone: str = "Europe/London"
    daily: int = 1000
    countries: tuple[str, ...] = ("+44",)
    trusted_proxies: str | int | Iterable[str] = ()


class App:
    """The handlers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sending = sending(settings.store, settings.zone, settings.secret_key, settings.daily)
        self._guessing = guessing(settings.store, settings.secret_key)
        self._codes = Codes(settings.codes, settings.secret_key, settings.now)
        self._address = client_address(settings.trusted_proxies)

    async def home(self, request: Request) -> Response:
        """The empty form."""
        return _page("Your code")

    async def send(self, request: Request) -> Response:
        """Send a code, if every limit allows it."""
        given = await _given(request)
        channel = given.get("channel", "sms")
        try:
            phone = read_phone(given.get("phone", ""), self._settings.countries)
            if channel not in COSTS:
                raise ValueError("Choose a text message or a phone call.")
        except ValueError as error:  # nothing is charged for what cannot be sent
            return self._mistaken(request, given, str(error))
        facts = {"phone": phone, "prefix": prefix_of(phone), "ip": self._ip(request)}
        decision = await self._sending.hit(facts, cost=COSTS[channel])
        if not decision.allowed:
            return self._refused(request, decision, "Not yet", given)
        code = await run_in_threadpool(self._codes.make, phone)
        try:
            await run_in_threadpool(self._settings.send, phone, code, channel)
        except Exception:
            _log.exception("the provider did not send a code")
            await self._sending.refund(decision)  # nothing was sent, so nothing is charged
            await run_in_threadpool(self._codes.forget, phone)
            return self._mistaken(request, given, "The code could not be sent. Try again.", 502)
        after = await self._sending.peek(facts, cost=COSTS["sms"])
        return self._sent(request, decision, after, phone, channel)

    async def check(self, request: Request) -> Response:
        """Check a code. Only wrong ones count, and they are charged before they are looked at."""
        given = await _given(request)
        try:
            phone = read_phone(given.get("phone", ""), self._settings.countries)
        except ValueError as error:
            return self._mistaken(request, given, str(error))
        attempt = await self._guessing.reserve(phone=phone, ip=self._ip(request))
        if not attempt.allowed:
            return self._refused(request, attempt.decision, "Not yet", given)
        right = await run_in_threadpool(self._codes.check, phone, given.get("code", "").strip())
        if not right:
            await attempt.commit()
            text = "This code is wrong, or it is no longer valid."
            if _wants_page(request):
                return _page("Enter your code", Note(text, bad=True), status=403, phone=phone, sent=True)
            return JSONResponse({"right": False, "detail": text}, 403)
        await attempt.cancel()
        if _wants_page(request):
            return _page("Thank you", Note("The code is right."))
        return JSONResponse({"right": True})

    def _ip(self, request: Request) -> str:
        peer = request.client.host if request.client else None
        return self._address(RequestFacts(headers=tuple(request.headers.items()), peer=peer))

    def _sent(self, request: Request, decision: Decision, after: Decision, phone: str, channel: str) -> Response:
        headers = dict(respond(decision.verdict).headers)
        wait_ms = -(-(after.retry_after_ns or 0) // 1_000_000)
        if not _wants_page(request):
            return JSONResponse({"sent": channel, "again_after_ms": wait_ms}, 202, headers)
        notes = [Note("The code is on its way. It is valid for ten minutes.")]
        if not after.allowed:
            notes.append(Note(f"Nothing came? {after.sentence().rpartition('. ')[2]}", wait_ms=wait_ms))
        return _page("Enter your code", *notes, headers=headers, phone=phone, channel=channel, sent=True)

    def _refused(self, request: Request, decision: Decision, title: str, given: dict[str, str]) -> Response:
        answer = respond(
            decision.verdict,
            accept=request.headers.get("accept"),
            method=request.method,
            zone=self._settings.zone,
        )
        if not _wants_page(request):
            return Response(answer.body, answer.status, dict(answer.headers))
        own = {name: value for name, value in answer.headers if name.startswith("RateLimit") or name == "Retry-After"}
        note = Note(decision.sentence(), bad=True, wait_ms=-(-(decision.retry_after_ns or 0) // 1_000_000))
        phone, channel = given.get("phone", ""), given.get("channel", "sms")
        return _page(title, note, status=answer.status, headers=own, phone=phone, channel=channel)

    def _mistaken(self, request: Request, given: dict[str, str], text: str, status: int = 400) -> Response:
        if not _wants_page(request):
            return JSONResponse({"status": status, "detail": text}, status)
        phone = given.get("phone", "")
        return _page("Your code", Note(text, bad=True), status=status, phone=phone, wrong=status == 400)


def create_app(settings: Settings) -> Starlette:
    """The application."""
    app = App(settings)
    return Starlette(
        routes=[
            Route("/", app.home),
            Route("/codes", app.send, methods=["POST"]),
            Route("/codes/check", app.check, methods=["POST"]),
            Route("/style.css", lambda request: Response(STYLE, media_type="text/css")),
            Route("/countdown.js", lambda request: Response(SCRIPT, media_type="text/javascript")),
        ]
    )


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _page(title: str, *notes: Note, status: int = 200, headers: dict[str, str] | None = None, **shown: Any) -> Response:
    text = page(title, *notes, **shown)
    return Response(text, status, {**SECURITY, **(headers or {})}, media_type="text/html")


async def _given(request: Request) -> dict[str, str]:
    """The fields of a form or the members of a JSON object; text only."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            return {}
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            found = json.loads(body)
        except ValueError:
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {name: value for name, value in pairs if isinstance(value, str)}
    return dict(parse_qsl(body.decode("utf-8", "replace")))
