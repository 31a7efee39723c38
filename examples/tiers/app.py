"""The API (``GET /items``), behind headway's middleware, and the administrator's two addresses."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.tiers.accounts import Account, Accounts
from examples.tiers.limits import ANONYMOUS, daily_quota, usage
from headway import Limit, QuotaError
from headway.adapters.asgi import RateLimitMiddleware, exempt
from headway.adapters.sources import by_request
from headway.errors import LimitError
from headway.stores.base import AsyncStore

_FOUND = "examples.account"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the application is made of.

    Attributes:
        store: where the limits' counters live: a store or a URL.
        accounts: the application's database.
        admin_token: the administrator's.
    """

    store: AsyncStore | str
    accounts: Accounts
    admin_token: str


class App:
    """The handlers, and who a request is of."""

    def __init__(self, settings: Settings) -> None:
        self.daily = daily_quota(settings.accounts)
        self.limiter = usage(self.daily, settings.store)
        self._accounts = settings.accounts
        self._admin = f"Bearer {settings.admin_token}"

    async def account_id(self, scope: Mapping[str, Any]) -> int | None:
        """The account whose key the request has; None counts it by its address."""
        found = await self._account(scope)
        return None if found is None else found.id

    async def plan(self, scope: Mapping[str, Any]) -> str:
        """Its plan."""
        found = await self._account(scope)
        return ANONYMOUS if found is None else found.plan

    async def items(self, request: Request) -> Response:
        """What is sold."""
        account = await self._account(request.scope)
        if account is None:
            return JSONResponse({"detail": "Send an API key in the header X-Api-Key."}, 401)
        return JSONResponse({"items": [], "plan": account.plan})

    @exempt
    async def change_account(self, request: Request) -> Response:
        """Another plan, or a quota of its own; the next request is counted by it."""
        if not self._allowed(request):
            return JSONResponse({"detail": "This is for the administrator."}, 401)
        given = await request.json()
        override = given.get("override")
        if problem := _wrong(override):
            return JSONResponse({"detail": problem}, 422)
        account = request.path_params["id"]
        changed = await run_in_threadpool(self._accounts.change, account, given.get("plan"), override)
        self.daily.forget(account=account)
        return JSONResponse({"changed": changed}, 200 if changed else 404)

    @exempt
    async def change_plan(self, request: Request) -> Response:
        """Another quota for everybody on a plan."""
        if not self._allowed(request):
            return JSONResponse({"detail": "This is for the administrator."}, 401)
        daily = (await request.json()).get("daily")
        if not daily or (problem := _wrong(daily)):
            return JSONResponse({"detail": problem if daily else "daily is missing"}, 422)
        await run_in_threadpool(self._accounts.set_plan, request.path_params["name"], daily)
        self.daily.forget()
        return JSONResponse({"changed": True})

    async def _account(self, scope: Any) -> Account | None:
        if _FOUND not in scope:
            key = dict(scope["headers"]).get(b"x-api-key", b"").decode("latin-1")
            scope[_FOUND] = await run_in_threadpool(self._accounts.of_key, key) if key else None
        found: Account | None = scope[_FOUND]
        return found

    def _allowed(self, request: Request) -> bool:
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), self._admin.encode())


def create_app(settings: Settings) -> Starlette:
    """The application."""
    app = App(settings)
    limits = Middleware(
        RateLimitMiddleware,
        limiter=app.limiter,
        attributes={"account": by_request(app.account_id, missing="address"), "plan": app.plan},
    )
    return Starlette(
        routes=[
            Route("/items", app.items),
            Route("/accounts/{id:int}", app.change_account, methods=["PUT"]),
            Route("/plans/{name}", app.change_plan, methods=["PUT"]),
        ],
        middleware=[limits],
    )


def _wrong(quota: object) -> str | None:
    """Why a quota cannot be the day's, or None: what is wrong is found before it is stored."""
    if quota in (None, "", "block", "unlimited"):
        return None
    try:
        limit = Limit("daily", quota, by="account")  # type: ignore[arg-type]  # which says what is no quota
    except (QuotaError, LimitError, TypeError) as error:
        return str(error)
    return None if limit.quota.zone else f"quota {quota!r}: expected a day's, such as '100 per day in UTC'"
