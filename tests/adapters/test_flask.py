"""Flask: what its extension and decorator do beyond what all adapters do."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from flask import Blueprint, Flask, jsonify
from flask.views import MethodView

from headway import AsyncLimiter, ConfigError, Limit, Limiter, MemoryStore, RateLimited
from headway.adapters import wsgi
from headway.adapters.flask import RateLimits
from headway.policy.identity import by_account
from headway.testing.clock import ManualClock


def ask(name: str, quota: str, clock: ManualClock, by: Any = "address", **more: Any) -> Limiter:
    return Limiter(Limit(name, quota, by=by, **more), store=MemoryStore(clock=clock))


def statuses(app: Flask, *paths: str) -> list[int]:
    return [app.test_client().get(path).status_code for path in paths]


def wrapping(view: Any) -> Any:
    """A decorator of somebody else's, as they should be."""

    @functools.wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return wrapper


def opaque(view: Any) -> Any:
    """A decorator that hides what it wraps."""

    def wrapper() -> Any:
        return view()

    return wrapper


@pytest.mark.parametrize("other", [wrapping, opaque])
def test_fs18_a_limit_below_the_route_counts_under_any_decorator(clock: ManualClock, other: Any) -> None:
    """laurentS/slowapi#39: next to the function, or with other decorators between it and the route, the limit is asked."""
    app = Flask("site")
    limits = RateLimits(app)

    @app.get("/inner", endpoint="inner")
    @other
    @limits.limit(ask("page", "2 per minute", clock))
    def inner() -> str:
        return "page"

    @app.get("/outer", endpoint="outer")
    @limits.limit(ask("page", "2 per minute", clock))
    @other
    def outer() -> str:
        return "page"

    assert statuses(app, *["/inner"] * 3) == [200, 200, 429]
    assert statuses(app, *["/outer"] * 3) == [200, 200, 429]


def test_fs18_a_limit_above_the_route_is_an_error_at_import(clock: ManualClock) -> None:
    """laurentS/slowapi#39: above the route decorator it would never be asked: the function and the right order are named."""
    app = Flask("site")
    limits = RateLimits(app)
    with pytest.raises(ConfigError, match=r"page\(\) was registered .* below the route decorator"):

        @limits.limit(ask("page", "2 per minute", clock))
        @app.get("/")
        def page() -> str:
            return "page"


def test_fs18_the_same_in_a_blueprint_is_an_error_by_the_first_request(clock: ManualClock) -> None:
    """A blueprint's routes are known when it is registered: no request passes before the mistake is said."""
    app = Flask("site")
    app.testing = True
    limits = RateLimits()
    pages = Blueprint("pages", "pages")

    @limits.limit(ask("page", "2 per minute", clock))
    @pages.get("/")
    def page() -> str:
        return "page"

    app.register_blueprint(pages)
    limits.init_app(app)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"page\(\) was registered"):
            app.test_client().get("/")


def test_a_view_may_be_limited_on_one_route_and_not_on_another(clock: ManualClock) -> None:
    """Limiting a registered view again by a call, for another route, is no mistake."""
    app = Flask("site")
    limits = RateLimits(app)

    def page() -> str:
        return "page"

    app.add_url_rule("/free", "free", page)
    app.add_url_rule("/limited", "limited", limits.limit(ask("page", "1 per minute", clock))(page))
    assert statuses(app, "/limited", "/limited", "/free", "/free") == [200, 429, 200, 200]


def test_blueprints_with_views_of_equal_names(clock: ManualClock) -> None:
    """Views called alike in two blueprints have their own limits, and routes tell them apart."""
    limits = RateLimits(None, ask("by-route", "3 per minute", clock, by="route"))
    app = Flask("site")
    limits.init_app(app)
    for name, quota in (("a", "1 per minute"), ("b", "2 per minute")):
        pages = Blueprint(name, name, url_prefix=f"/{name}")

        @pages.get("/")
        @limits.limit(ask(f"page-{name}", quota, clock))
        def index() -> str:
            return "page"

        app.register_blueprint(pages)
    assert statuses(app, "/a/", "/a/", "/b/", "/b/", "/b/") == [200, 429, 200, 200, 429]


def test_class_based_views(clock: ManualClock) -> None:
    """A MethodView takes the limit in ``decorators`` for all methods, or on one of them."""
    app = Flask("site")
    limits = RateLimits(app)

    class All(MethodView):
        decorators = (limits.limit(ask("all", "1 per minute", clock)),)

        def get(self) -> str:
            return "got"

    class One(MethodView):
        @limits.limit(ask("one", "1 per minute", clock))
        def post(self) -> str:
            return "posted"

        def get(self) -> str:
            return "got"

    app.add_url_rule("/all", view_func=All.as_view("all"))
    app.add_url_rule("/one", view_func=One.as_view("one"))
    assert statuses(app, "/all", "/all", "/one", "/one") == [200, 429, 200, 200]
    client = app.test_client()
    assert [client.post("/one").status_code, client.post("/one").status_code] == [200, 429]


def test_the_applications_own_answer_goes_first(clock: ManualClock) -> None:
    """An ``errorhandler`` for RateLimited answers in the application's own way, with the fields added."""
    app = Flask("site")
    limits = RateLimits(app)

    @app.errorhandler(RateLimited)
    def mine(error: RateLimited) -> Any:
        return jsonify(try_again_in=error.decision.retry_after), 429

    @app.get("/")
    @limits.limit(ask("page", "1 per minute", clock))
    def page() -> str:
        return "page"

    statuses(app, "/")
    refused = app.test_client().get("/")
    assert (refused.status_code, refused.get_json()) == (429, {"try_again_in": 60.0})
    assert (refused.headers["Retry-After"], refused.headers["RateLimit"]) == ("60", '"page";r=0;t=60')


def test_one_writer_with_the_wsgi_middleware_around(clock: ManualClock) -> None:
    """A WSGI middleware, the extension and a decorator make one set of fields, and what they charge is given back together."""
    app = Flask("site")
    limits = RateLimits(app, ask("app", "8 per minute", clock, algorithm="fixed-window"))

    @app.get("/")
    @limits.limit(ask("page", "1 per minute", clock))
    def page() -> str:
        return "page"

    outer = ask("outer", "9 per minute", clock, algorithm="fixed-window")
    app.wsgi_app = wsgi.RateLimitMiddleware(app.wsgi_app, outer)  # type: ignore[method-assign]  # Flask's own way
    admitted = app.test_client().get("/")
    assert admitted.headers.getlist("RateLimit") == ['"outer";r=8;t=60, "app";r=7;t=60, "page";r=0;t=60']
    for _ in range(3):
        refused = app.test_client().get("/")
        assert (refused.status_code, len(refused.headers.getlist("RateLimit"))) == (429, 1)
    assert outer.peek(address="127.0.0.1").remaining == 7


def test_accounts_come_from_the_application(clock: ManualClock) -> None:
    """``account`` names whoever the application has authenticated; others are counted by their address, apart."""
    from flask import g, request

    app = Flask("site")

    @app.before_request
    def authenticate() -> None:
        g.user = request.headers.get("X-User")

    RateLimits(
        app,
        ask("account", "1 per minute", clock, by="account"),
        attributes={"account": by_account(missing="address")},
        account=lambda request: g.user,
    )

    @app.get("/")
    def page() -> str:
        return "page"

    client = app.test_client()
    found = [client.get("/", headers={"X-User": user}).status_code for user in ("ann", "bob", "ann", "127.0.0.1")]
    assert found == [200, 200, 429, 200]
    assert statuses(app, "/", "/") == [200, 429]


def test_an_async_limiter_is_refused() -> None:
    """Flask cannot await: the error names Limiter."""
    limiter = AsyncLimiter(Limit("all", "1 per minute", by="address"))
    with pytest.raises(TypeError, match="RateLimits cannot await an AsyncLimiter: use Limiter"):
        RateLimits(None, limiter)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="use Limiter"):
        RateLimits().limit(limiter)(lambda: "page")  # type: ignore[arg-type]


def test_a_limited_view_needs_a_request(clock: ManualClock) -> None:
    """Called without a request, a limited view says so."""
    limits = RateLimits()

    @limits.limit(ask("page", "1 per minute", clock))
    def page() -> str:
        return "page"

    with pytest.raises(RuntimeError, match="there is no request"):
        page()


def test_an_exception_that_is_let_out_is_still_settled(clock: ManualClock) -> None:
    """In testing mode exceptions propagate; what was held is given back all the same."""
    app = Flask("site")
    app.testing = True
    limiter = ask("held", "1 at once for 1 hour", clock)
    RateLimits(app, limiter)

    @app.get("/")
    def page() -> str:
        raise RuntimeError("this page fails")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="this page fails"):
            app.test_client().get("/")
    assert limiter.peek(address="127.0.0.1").allowed
