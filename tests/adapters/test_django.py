"""Django: settings and what ``manage.py check`` says of them, views of every kind, and REST framework's throttles."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import StringIO
from typing import Any

import pytest

from adapters.django_project import configured

configured()

from django.core.management import call_command  # noqa: E402  # Django has to be set up first
from django.core.management.base import SystemCheckError  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import AsyncClient, Client  # noqa: E402
from django.test.utils import override_settings  # noqa: E402
from django.urls import path  # noqa: E402
from django.utils.decorators import method_decorator  # noqa: E402
from django.views import View  # noqa: E402
from rest_framework.decorators import api_view, throttle_classes  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.settings import api_settings  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from headway import AsyncLimiter, ConfigError, Limit, Limiter, MemoryStore, RateLimited  # noqa: E402
from headway.adapters.django import limit  # noqa: E402
from headway.adapters.ledger import failed  # noqa: E402
from headway.adapters.rest_framework import RateLimitThrottle  # noqa: E402
from headway.policy.identity import by_account  # noqa: E402
from headway.testing.clock import ManualClock  # noqa: E402
from headway.testing.isolation import isolated  # noqa: E402

MIDDLEWARE = ["headway.adapters.django.RateLimitMiddleware"]
LIMITS = ["3 per minute"]

Site = Callable[..., Client]


def ask(name: str, quota: str, clock: ManualClock, by: Any = "address", **more: Any) -> Limiter:
    return Limiter(Limit(name, quota, by=by, **more), store=MemoryStore(clock=clock))


def hello(request: Any, **_: Any) -> HttpResponse:
    return HttpResponse("hello")


@pytest.fixture
def site() -> Iterator[Site]:
    """Sets Django up with these settings for the test's time, and gives a client."""
    with ExitStack() as stack:

        def make(*urls: Any, client: Any = Client, middleware: Any = MIDDLEWARE, **settings: Any) -> Client:
            rest = {"REST_FRAMEWORK": {"DEFAULT_AUTHENTICATION_CLASSES": []}}
            changed = {"ROOT_URLCONF": urls or (path("", hello),), "MIDDLEWARE": middleware, **rest, **settings}
            stack.enter_context(override_settings(**changed))
            return client(raise_request_exception=False)  # type: ignore[no-any-return]

        yield make


def test_settings_are_enough(site: Site) -> None:
    """A quota's text is a limit by address; the middleware applies it to every page."""
    with isolated() as limits:
        client = site(HEADWAY={"LIMITS": LIMITS})
        found = [client.get("/") for _ in range(4)]
        assert [answer.status_code for answer in found] == [200, 200, 200, 429]
        assert found[0]["RateLimit"] == '"limit-1";r=2;t=20'
        assert json.loads(found[3].content)["violated-policies"] == ["limit-1"]
        limits.travel(20)
        assert client.get("/").status_code == 200


def test_settings_take_limits_in_every_form(site: Site) -> None:
    """Limits as text, as arguments by name and as themselves, and the options of a guard in capitals."""
    with isolated():
        client = site(
            HEADWAY={
                "LIMITS": [
                    "9 per minute",
                    {"name": "team", "quota": "8 per minute", "by": ["team"]},
                    Limit("all", "7/min"),
                ],
                "ATTRIBUTES": {"team": lambda request: request.headers.get("X-Team")},
                "EXEMPT_PATHS": ["/open"],
                "COST": 2,
                "NAMESPACE": "site",
            }
        )
        answer = client.get("/", headers={"X-Team": "red"})
        assert answer["RateLimit"] == '"limit-1";r=7;t=7, "team";r=6;t=8, "all";r=5;t=9'
        assert "RateLimit" not in client.get("/open")


def test_accounts_are_known_to_django(site: Site) -> None:
    """``by_account`` counts by the authenticated user's primary key, others by their address."""

    class User:
        is_authenticated = True

        def __init__(self, pk: int) -> None:
            self.pk = pk

    class Nobody:
        is_authenticated = False

    def authentication(get_response: Any) -> Any:
        def middleware(request: Any) -> Any:
            name = request.headers.get("X-User")
            request.user = User(int(name)) if name else Nobody()
            return get_response(request)

        return middleware

    import types

    module = types.ModuleType("adapters_authentication")
    module.authentication = authentication  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch, isolated():
        patch.setitem(__import__("sys").modules, "adapters_authentication", module)
        client = site(
            middleware=["adapters_authentication.authentication", *MIDDLEWARE],
            HEADWAY={
                "LIMITS": [Limit("account", "1 per minute", by="account")],
                "ATTRIBUTES": {"account": by_account(missing="address")},
            },
        )
        found = [client.get("/", headers={"X-User": user}).status_code for user in ("1", "2", "1")]
        assert found == [200, 200, 429]
        assert [client.get("/").status_code, client.get("/").status_code] == [200, 429]


def test_sync_and_async_servers_share_a_memory_store(site: Site) -> None:
    """One process that serves both ways counts each client once."""
    with isolated():
        client = site(HEADWAY={"LIMITS": LIMITS})
        assert client.get("/").status_code == 200
        other = AsyncClient()

        async def twice() -> list[int]:
            return [(await other.get("/")).status_code for _ in range(3)]

        assert asyncio.run(twice()) == [200, 200, 429]


def checked() -> tuple[str, str]:
    """(errors, everything) that ``manage.py check`` prints."""
    out, err = StringIO(), StringIO()
    try:
        call_command("check", stdout=out, stderr=err)
    except SystemCheckError as error:
        return str(error), str(error)
    return "", out.getvalue() + err.getvalue()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (None, "HEADWAY: is missing; expected a dict with LIMITS"),
        (["3 per minute"], "HEADWAY: is a list; expected a dict"),
        ({}, "HEADWAY.LIMITS: None; expected a list of limits"),
        ({"LIMITS": "3 per minute"}, "HEADWAY.LIMITS: '3 per minute'; expected a list"),
        ({"LIMITS": []}, "HEADWAY.LIMITS: []; expected a list of limits, at least one"),
        ({"LIMITS": ["3 per minit"]}, "HEADWAY.LIMITS[0]: quota '3 per minit'"),
        ({"LIMITS": [{"name": "a", "quote": "3/min"}]}, "HEADWAY.LIMITS[0]: "),
        ({"LIMITS": [3]}, "3 is no Limit"),
        ({"LIMIT": LIMITS}, "HEADWAY.LIMIT: unknown key; did you mean 'LIMITS'?"),
        ({"LIMITS": LIMITS, "trusted_proxies": []}, "did you mean 'TRUSTED_PROXIES'?"),
        ({"LIMITS": LIMITS, "STORE": "mysql://x"}, "store URL 'mysql://x'"),
        ({"LIMITS": LIMITS, "TRUSTED_PROXIES": ["0.0.0.0/0"]}, "trusts every address"),
        ({"LIMITS": LIMITS, "SKIP_IF": "nowhere.at_all"}, "HEADWAY.SKIP_IF: 'nowhere.at_all' cannot be imported"),
        ({"LIMITS": LIMITS, "ATTRIBUTES": {"team": "nowhere.at_all"}}, "HEADWAY.ATTRIBUTES['team']: "),
        ({"LIMITS": LIMITS, "ATTRIBUTES": 3}, "HEADWAY.ATTRIBUTES: is an int; expected a dict"),
        ({"LIMITS": [Limit("sms", "1/day", by="phone")]}, "keyed by 'phone', which nothing gives"),
        ({"LIMITS": LIMITS, "COST": "many"}, "HEADWAY.COST: 'many' cannot be imported"),
        ({"LIMITS": LIMITS, "COST": 1.5}, "cost is 1.5"),
        ({"LIMITS": LIMITS, "DIALECTS": ["draft99"]}, "'draft99' is no header dialect"),
        ({"LIMITER": 3}, "3 is no limiter"),
        ({"LIMITER": 3, "LIMITS": LIMITS}, "LIMITER brings its own; drop LIMITS"),
    ],
)
def test_check_names_what_is_wrong(site: Site, setting: Any, said: str) -> None:
    """``manage.py check`` fails with the key, what is there and what is expected."""
    site(HEADWAY=setting)
    errors, _ = checked()
    assert "headway.E001" in errors
    assert said in errors


def test_check_is_silent_about_what_is_right(site: Site) -> None:
    """Sound settings, an asynchronous limiter, and decorators without settings draw no message."""
    for more in (
        {"HEADWAY": {"LIMITS": LIMITS}},
        {"HEADWAY": {"LIMITER": AsyncLimiter(Limit("all", "1/min"))}},
        {"middleware": [], "HEADWAY": None},
    ):
        site(**more)
        assert "headway." not in checked()[1]


def test_check_looks_at_the_order_of_middleware(site: Site) -> None:
    """Missing, twice, before CORS and before authentication are said; each says what to do."""
    auth = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ]
    cors = "corsheaders.middleware.CorsMiddleware"
    by = {
        "LIMITS": [Limit("account", "1 per minute", by="account")],
        "ATTRIBUTES": {"account": by_account(missing="address")},
    }
    for middleware, setting, code in (
        ([], {"LIMITS": LIMITS}, "headway.W001"),
        (MIDDLEWARE * 2, {"LIMITS": LIMITS}, "headway.E002"),
        ([*MIDDLEWARE, cors], {"LIMITS": LIMITS}, "headway.W002"),
        ([*MIDDLEWARE, *auth], by, "headway.W003"),
        ([cors, *auth, *MIDDLEWARE], by, None),
    ):
        site(middleware=middleware, HEADWAY=setting)
        said = checked()[1]
        assert (code in said) if code else ("headway." not in said), (middleware, said)


def test_the_middleware_does_not_start_with_wrong_settings(site: Site) -> None:
    """Without ``check`` the mistake is an error all the same, not a site without limits."""
    with pytest.raises(ConfigError, match="did you mean 'LIMITS'"):
        site(HEADWAY={"LIMIT": LIMITS}).get("/")


def test_the_decorator_in_any_order(site: Site, clock: ManualClock) -> None:
    """Above and below other decorators, on classes and through includes, the limit is asked."""
    from django.urls import include
    from django.views.decorators.cache import never_cache

    @limit(ask("above", "1 per minute", clock))
    @never_cache
    def above(request: Any) -> Any:
        return HttpResponse("above")

    @never_cache
    @limit(ask("below", "1 per minute", clock))
    def below(request: Any) -> Any:
        return HttpResponse("below")

    @method_decorator(limit(ask("class", "1 per minute", clock)), name="dispatch")
    class Page(View):
        def get(self, request: Any) -> Any:
            return HttpResponse("class")

    urls = [path("above", above), path("below", below), path("class", Page.as_view())]
    client = site(path("in/", include(urls)), middleware=[])
    for page in ("above", "below", "class"):
        assert [client.get(f"/in/{page}").status_code for _ in range(2)] == [200, 429]


def test_middleware_and_decorator_make_one_set_of_fields(site: Site, clock: ManualClock) -> None:
    """The site's limit and a view's own are one answer; a refusal by the view's is given back to the site's."""
    site_wide = Limiter(
        Limit("site", "9 per minute", by="address", algorithm="fixed-window"), store=MemoryStore(clock=clock)
    )
    view = limit(ask("view", "1 per minute", clock))(hello)
    client = site(path("", view), path("other", hello), HEADWAY={"LIMITER": site_wide})
    assert client.get("/")["RateLimit"] == '"site";r=8;t=60, "view";r=0;t=60'
    assert [client.get("/").status_code for _ in range(4)] == [429] * 4
    assert client.get("/other")["RateLimit"] == '"site";r=7;t=60'


def test_a_refusal_that_a_view_raises_is_answered(site: Site, clock: ManualClock) -> None:
    """``RateLimited`` out of a view becomes the whole answer, where the middleware is."""
    codes = ask("codes", "1 per minute", clock, by="phone")

    def view(request: Any) -> Any:
        with codes.admitted(phone="+447700900123"):
            return HttpResponse("sent")

    client = site(path("", view), HEADWAY={"LIMITER": ask("site", "9 per minute", clock, algorithm="fixed-window")})
    assert client.get("/").status_code == 200
    refused = client.get("/")
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    assert json.loads(refused.content)["limit"] == "codes"


def test_a_limiter_of_the_wrong_kind_is_named(tmp_path: Any, clock: ManualClock) -> None:
    """An async view takes AsyncLimiter (or memory), a plain one Limiter; a class takes method_decorator."""

    async def view(request: Any) -> Any:
        return HttpResponse("async")

    waits = Limiter(Limit("all", "1 per minute", by="address"), store=f"sqlite:////{tmp_path}/limits.db")
    with pytest.raises(TypeError, match="use AsyncLimiter"):
        limit(waits)(view)
    waits.close()
    with pytest.raises(TypeError, match="use Limiter"):
        limit(AsyncLimiter(Limit("all", "1 per minute", by="address")))(hello)
    with pytest.raises(TypeError, match="method_decorator"):
        limit(ask("all", "1 per minute", clock))(View)
    with pytest.raises(TypeError, match="has no request"):
        limit(ask("all", "1 per minute", clock))(hello)(3)


# REST framework


def view_with(*throttles: Any) -> Any:
    @api_view(["GET"])
    @throttle_classes(list(throttles))
    def view(request: Any) -> Any:
        return Response({"said": "hello"})

    return view


def throttle(limiter: Limiter, **options: Any) -> Any:
    return type("Throttle", (RateLimitThrottle,), {"limiter": limiter, "options": options})


def test_a_throttle_refuses_with_the_wait_and_all_fields(site: Site, clock: ManualClock) -> None:
    """A 429 with our Retry-After, REST framework's own body, and the fields on every answer; without any middleware."""
    client = site(path("", view_with(throttle(ask("api", "2 per minute", clock)))), middleware=[])
    found = [client.get("/") for _ in range(3)]
    assert [answer.status_code for answer in found] == [200, 200, 429]
    assert [answer["RateLimit"] for answer in found] == ['"api";r=1;t=30', '"api";r=0;t=30', '"api";r=0;t=30']
    assert found[2]["Retry-After"] == "30"
    assert found[2].json() == {"detail": "Request was throttled. Expected available in 30 seconds."}
    clock.advance(30)
    assert client.get("/").status_code == 200


def test_waits_are_exact(clock: ManualClock) -> None:
    """``wait()`` is the exact wait in seconds, not rounded down."""
    from rest_framework.test import APIRequestFactory

    limiter = ask("api", "1 per 2s", clock)
    one = throttle(limiter)()
    view = APIView()

    def asked() -> bool:
        request = view.initialize_request(APIRequestFactory().get("/"))
        request._request.resolver_match = None
        view.headers = {}
        return bool(one.allow_request(request, view))

    assert asked()
    clock.advance(ns=700_000_000)
    assert not asked()
    assert one.wait() == 1.3


def test_the_exception_handler_answers_in_full(site: Site, clock: ManualClock) -> None:
    """With our exception handler the problem document is the body; other errors stay REST framework's."""
    handler = {
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "EXCEPTION_HANDLER": "headway.adapters.rest_framework.exception_handler",
    }
    codes = ask("codes", "1 per hour", clock, by="phone")

    @api_view(["GET"])
    def by_hand(request: Any) -> Any:
        with codes.admitted(phone="+447700900123"):
            return Response("sent")

    @api_view(["POST"])
    def post(request: Any) -> Any:
        return Response("posted")

    client = site(
        path("", view_with(throttle(ask("api", "1 per minute", clock)))),
        path("by-hand", by_hand),
        path("post", post),
        middleware=[],
        REST_FRAMEWORK=handler,
    )
    assert api_settings.EXCEPTION_HANDLER.__module__ == "headway.adapters.rest_framework"
    client.get("/")
    refused = client.get("/")
    assert refused["Content-Type"] == "application/problem+json"
    assert json.loads(refused.content)["violated-policies"] == ["api"]
    assert [client.get("/by-hand").status_code for _ in range(2)] == [200, 429]
    assert client.get("/post").json() == {"detail": 'Method "GET" not allowed.'}


def test_two_throttles_are_all_or_nothing(site: Site, clock: ManualClock) -> None:
    """encode/django-rest-framework#6491: what one throttle refuses is not charged to another, before or after it."""
    day = ask("day", "9 per day", clock, algorithm="fixed-window")
    minute = ask("minute", "1 per minute", clock)
    hour = ask("hour", "8 per hour", clock, algorithm="fixed-window")
    client = site(path("", view_with(throttle(day), throttle(minute), throttle(hour))), middleware=[])
    assert [client.get("/").status_code for _ in range(6)] == [200, 429, 429, 429, 429, 429]
    assert day.peek(address="127.0.0.1", cost=0).remaining == 8
    assert hour.peek(address="127.0.0.1", cost=0).remaining == 7


def test_other_refusals_keep_their_status(site: Site, clock: ManualClock) -> None:
    """What waiting cannot help is no 429: a ban is a 403, a cost that never fits a 422; neither has a Retry-After."""
    for quota, cost, status in (("0 per day", 1, 403), ("3 per day", 4, 422)):
        client = site(path("", view_with(throttle(ask("api", quota, clock), cost=cost))), middleware=[])
        answer = client.get("/")
        assert (answer.status_code, "Retry-After" in answer) == (status, False)
        assert "Waiting doesn't help" in answer.json()["detail"]


def test_settling_needs_the_middleware(site: Site, clock: ManualClock) -> None:
    """A throttle cannot see the response: without the middleware that is said, with it only failures are charged."""
    throttled = throttle(ask("api", "1 per minute", clock), charge_if=failed)
    client = site(path("", view_with(throttled)), middleware=[])
    with pytest.raises(ConfigError, match="in MIDDLEWARE"):
        Client().get("/")
    assert client.get("/").status_code == 500
    clock.advance(60)
    client = site(path("", view_with(throttled)), HEADWAY={"LIMITER": ask("site", "99 per minute", clock)})
    assert [client.get("/").status_code for _ in range(4)] == [200] * 4


def test_a_throttle_without_a_limiter_takes_the_settings(site: Site) -> None:
    """``RateLimitThrottle`` itself applies ``settings.HEADWAY``, once even where the middleware does too."""
    with isolated():
        for middleware in ([], MIDDLEWARE):
            client = site(path("", view_with(RateLimitThrottle)), middleware=middleware, HEADWAY={"LIMITS": LIMITS})
            assert [client.get("/").status_code for _ in range(4)] == [200, 200, 200, 429]


def test_refusals_are_no_errors_of_the_view(clock: ManualClock) -> None:
    """``RateLimited`` keeps its decision on its way through Django."""
    limiter = ask("all", "1 per minute", clock)
    limiter.hit(address="x")
    with pytest.raises(RateLimited) as refused, limiter.admitted(address="x"):
        pass
    assert refused.value.decision.limit == "all"
