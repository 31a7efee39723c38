"""The application: a form at ``/``, and ``POST /login`` for people and programs alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from examples.login import devices
from examples.login.limits import HERE, account_of, failures
from examples.login.users import Users
from headway.policy.client_address import client_address
from headway.policy.request import RequestFacts
from headway.presentation.response import respond
from headway.stores.base import AsyncStore

_WRONG = "The name or the password is wrong."
_LONGEST_BODY = 4_000
_POLICY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the application is made of.

    Attributes:
        store: where the limits' counters live: a store or a URL.
        users: the accounts.
        secret_key: at least 16 bytes.
        trusted_proxies: see ``headway.policy.client_address``.
        secure_cookies: cookies are for https only; False for a server without it.
    """

    store: AsyncStore | str
    users: Users
    secret_key: bytes
    trusted_proxies: str | int | Iterable[str] = ()
    secure_cookies: bool = True


class App:
    """The handlers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._failures = failures(settings.store, settings.secret_key)
        self._address = client_address(settings.trusted_proxies)

    async def home(self, request: Request) -> Response:
        """The form."""
        return _page()

    async def login(self, request: Request) -> Response:
        """Check a password. The failure is charged before it is looked at, so parallel guesses are not free."""
        given = await _given(request)
        account = account_of(given.get("name", ""))
        key = self._settings.secret_key
        ip = self._address(RequestFacts(headers=tuple(request.headers.items()), peer=_peer(request)))
        device = devices.recognise(request.cookies.get(devices.COOKIE), account, key)
        place = ("address", ip) if device is None else ("device", device)
        known = "no" if device is None else "yes"
        attempt = await self._failures.reserve(account=account, place=place, ip=ip, known=known)
        if not attempt.allowed:
            answer = respond(
                attempt.decision.verdict,
                accept=request.headers.get("accept"),
                accept_language=request.headers.get("accept-language"),
                method=request.method,
            )
            return Response(answer.body, answer.status, dict(answer.headers))
        right = await run_in_threadpool(self._settings.users.check, account, given.get("password", ""))
        if not right:
            await attempt.commit()
            if _wants_page(request):
                return _page(_WRONG, name=given.get("name", ""), status=403)
            return JSONResponse({"welcome": False, "detail": _WRONG}, 403)
        await attempt.cancel()
        await self._failures.reset(HERE, account=account, place=place)
        welcome: Response = _page("Welcome.") if _wants_page(request) else JSONResponse({"welcome": True})
        if device is None:
            cookie = devices.give(account, key)
            welcome.set_cookie(
                devices.COOKIE,
                cookie,
                max_age=devices.LASTS_SECONDS,
                secure=self._settings.secure_cookies,
                httponly=True,
                samesite="strict",
            )
        return welcome


def create_app(settings: Settings) -> Starlette:
    """The application."""
    app = App(settings)
    return Starlette(routes=[Route("/", app.home), Route("/login", app.login, methods=["POST"])])


def _peer(request: Request) -> str | None:
    return request.client.host if request.client else None


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _page(said: str = "", *, name: str = "", status: int = 200) -> Response:
    note = f'<p role="{"alert" if status >= 400 else "status"}">{escape(said)}</p>\n' if said else ""
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in</title>
<style>:root {{ color-scheme: light dark }} body {{ font: 1.125rem/1.6 system-ui, sans-serif; max-width: 24rem; margin: 2rem auto; padding: 0 1rem }}
input, button {{ font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin-bottom: 1rem }}</style>
</head>
<body>
<main>
<h1>Log in</h1>
{note}<form method="post" action="/login">
<label for="name">Name</label>
<input id="name" name="name" autocomplete="username" required value="{escape(name)}">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Log in</button>
</form>
</main>
</body>
</html>
"""
    return HTMLResponse(text, status, {**_POLICY, "Cache-Control": "no-store"})


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
