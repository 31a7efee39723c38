"""What every adapter does alike: the same tests over a small site in every framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from adapters.sites import PEER, ROUTES, WHOLE, Site
from headway import Limit
from headway.adapters.ledger import failed
from headway.policy.identity import by_header, by_path_param
from headway.testing.clock import ManualClock

Make = Callable[..., Site]

THREE = Limit("three", "3 per minute", by="address")


def _maker(kind: type[Site], name: str, clock: ManualClock) -> Iterator[Make]:
    sites: list[Site] = []

    def make(*limits: Limit, **options: Any) -> Site:
        site = kind(name, limits or (THREE,), clock, options)
        sites.append(site)
        return site

    yield make
    for site in reversed(sites):
        site.close()


@pytest.fixture(params=[*WHOLE, *ROUTES])
def make(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Make]:
    """Makes a site; of every framework, in every way of limiting it."""
    yield from _maker({**WHOLE, **ROUTES}[request.param], request.param, clock)


@pytest.fixture(params=WHOLE)
def make_whole(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Make]:
    """Makes a site that is limited as a whole."""
    yield from _maker(WHOLE[request.param], request.param, clock)


def statuses(site: Site, *paths: str, **more: Any) -> list[int]:
    return [site.get(path, **more).status for path in paths]


def test_requests_above_the_limit_are_refused(make: Make) -> None:
    """Three pass with falling ``r``, the fourth is a whole 429, and it passes exactly when it was told."""
    site = make()
    for left in (2, 1, 0):
        answer = site.get("/items/1")
        assert (answer.status, answer.remaining) == (200, [left])
        assert answer.headers["ratelimit-policy"] == '"three";q=3;w=60'
        assert "retry-after" not in answer.headers
    refused = site.get("/items/1")
    assert refused.status == 429
    assert refused.headers["retry-after"] == "20"
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["cache-control"] == "no-store"
    assert refused.remaining == [0]
    assert refused.problem["violated-policies"] == ["three"]
    assert refused.problem["retry_after_ms"] == 20_000
    site.clock.advance(ns=20_000_000_000 - 1)
    assert site.get("/items/1").headers["retry-after"] == "1"
    site.clock.advance(ns=1)
    assert site.get("/items/1").status == 200


def test_shadow_limits_are_counted_and_seen_by_nobody(make: Make) -> None:
    """Whatever a shadow limit would have refused passes, no field or body tells of it, and the limiter's report does."""
    site = make(THREE, Limit("trial", "1 per minute", by="address", shadow=True))
    answers = [site.get("/items/1") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert all("trial" not in f"{answer.headers} {answer.body!r}" for answer in answers)
    count = site.limiter.shadow_report().of("trial")
    assert (count.requests, count.would_refuse, count.newly_refused, count.callers_refused) == (4, 3, 2, 1)


def test_a_refused_request_does_not_reach_the_page(make: Make) -> None:
    """The page of a refused request does not run: /failing raises only while requests are admitted."""
    site = make(Limit("one", "1 per minute", by="address"))
    assert site.get("/failing").status == 500
    assert site.get("/failing").status == 429


def test_every_field_is_there_once(make: Make) -> None:
    """No field of ours is on an answer twice."""
    site = make()
    for _ in range(4):
        assert "," not in site.get("/items/1").headers["ratelimit"]


def test_other_addresses_have_their_own_quota(make: Make) -> None:
    """One client's requests are not another's."""
    site = make()
    assert statuses(site, *["/items/1"] * 4) == [200, 200, 200, 429]
    assert site.get("/items/1", peer="203.0.113.8").status == 200


def test_addresses_of_one_ipv6_subscriber_are_one(make: Make) -> None:
    """Addresses of one /64 share a counter."""
    site = make()
    found = [site.get("/items/1", peer=f"2001:db8:1:2::{last}").status for last in range(1, 5)]
    assert found == [200, 200, 200, 429]
    assert site.get("/items/1", peer="2001:db8:1:3::1").status == 200


def test_forwarded_addresses_are_believed_only_of_trusted_proxies(make: Make) -> None:
    """A caller cannot choose its address; behind a named proxy each client is one."""
    open_site = make()
    found = [open_site.get("/items/1", {"X-Forwarded-For": f"10.0.0.{last}"}).status for last in range(4)]
    assert found == [200, 200, 200, 429]
    site = make(trusted_proxies=[PEER])
    found = [site.get("/items/1", {"X-Forwarded-For": f"10.0.0.{last}"}).status for last in range(4)]
    assert found == [200] * 4


def test_a_peer_without_an_address_is_one(make: Make) -> None:
    """Requests over a Unix socket are counted together, not let through."""
    site = make()
    assert [site.get("/items/1", peer=None).status for _ in range(4)] == [200, 200, 200, 429]


def test_ids_are_one_route(make: Make) -> None:
    """By route, /items/1 and /items/2 share a counter, and a handler of the same name on another route does not."""
    site = make(Limit("three", "3 per minute", by=("address", "route")))
    assert statuses(site, *[f"/items/{n}" for n in range(4)]) == [200, 200, 200, 429]
    assert statuses(site, *[f"/twin/{n}" for n in range(4)]) == [200, 200, 200, 429]


def test_a_path_parameter_can_be_a_key(make: Make) -> None:
    """A parameter of the route is an attribute where one asks for it."""
    site = make(Limit("one", "1 per minute", by="item"), attributes={"item": by_path_param("id", missing="refuse")})
    assert statuses(site, "/items/1", "/items/2", "/items/1") == [200, 200, 429]


def test_head_counts_as_get_and_a_refusal_of_it_has_no_body(make: Make) -> None:
    """HEAD is counted with GET, and its refusal has GET's fields without a body."""
    site = make(Limit("two", "2 per minute", by=("address", "route")))
    assert site.get("/items/1").status == 200
    head = site.get("/items/1", method="HEAD")
    assert (head.status, head.remaining) == (200, [0])
    refused = site.get("/items/1", method="HEAD")
    assert refused.status == 429
    assert refused.body == b""
    assert int(refused.headers["content-length"]) > 0
    assert refused.headers["retry-after"] == "30"


def test_preflights_are_neither_counted_nor_refused(make_whole: Make) -> None:
    """A browser's preflight costs nothing and always reaches the application; a plain OPTIONS is a request."""
    site = make_whole()
    asking = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    for _ in range(10):
        answer = site.get("/items/1", asking, method="OPTIONS")
        assert answer.status != 429
        assert "ratelimit" not in answer.headers
    found = [site.get("/items/1", {"Origin": "https://app.example"}) for _ in range(4)]
    assert [answer.status for answer in found] == [200, 200, 200, 429]
    assert site.get("/items/1", method="OPTIONS").status == 429
    assert site.get("/items/1", {"Origin": "https://app.example"}, method="OPTIONS").status == 429
    assert site.get("/items/1", asking, method="OPTIONS").status != 429


def test_fields_are_exposed_where_the_application_answers_cors(make: Make) -> None:
    """Scripts of other sites may read our fields besides those that the application names itself."""
    answer = make().get("/cors")
    named = answer.headers["access-control-expose-headers"].split(", ")
    assert named == ["X-Own", "RateLimit-Policy", "RateLimit"]
    assert answer.headers["access-control-allow-origin"] == "https://app.example"


def test_a_refusal_is_exposed_to_who_asks_from_elsewhere(make: Make) -> None:
    """The refusal of a cross-site request names Retry-After among what may be read; others name nothing."""
    site = make(Limit("one", "1 per minute", by="address"))
    site.get("/items/1")
    refused = site.get("/items/1", {"Origin": "https://app.example"})
    assert "Retry-After" in refused.headers["access-control-expose-headers"].split(", ")
    assert "access-control-expose-headers" not in site.get("/items/1").headers


def test_health_probes_are_exempt_by_their_exact_path(make_whole: Make) -> None:
    """Probes are neither counted nor refused; /healthcare is a page like any other."""
    site = make_whole()
    assert {site.get("/health").status for _ in range(20)} == {200}
    assert "ratelimit" not in site.get("/health").headers
    assert statuses(site, *["/healthcare"] * 4) == [200, 200, 200, 429]
    assert site.get("/health").status == 200


def test_probes_can_be_counted_or_have_a_limit_of_their_own(make_whole: Make) -> None:
    """With no exempt paths probes are requests; with a limiter for them they have a quota of their own."""
    assert statuses(make_whole(exempt_paths=()), *["/health"] * 4) == [200, 200, 200, 429]
    site = make_whole()
    probes = site.kind(Limit("probes", "2 per minute", by="address"), store=site.store)
    site = make_whole(probe_limiter=probes)
    assert statuses(site, *["/health"] * 3) == [200, 200, 429]
    assert statuses(site, *["/items/1"] * 4) == [200, 200, 200, 429]


def test_static_files_are_exempt_unless_said_otherwise(make_whole: Make) -> None:
    """The files of one page do not spend a person's quota."""
    site = make_whole()
    if not site.knows_static:
        pytest.skip("this framework does not say which files are static: use skip_if")
    assert {site.get("/static/app.js").status for _ in range(9)} == {200}
    assert site.get("/items/1").remaining == [2]
    assert statuses(make_whole(exempt_static=False), *["/static/app.js"] * 4) == [200, 200, 200, 429]


def test_unmatched_paths_share_one_counter(make_whole: Make) -> None:
    """404s are counted, all together whatever their URLs, and carry the fields."""
    site = make_whole(Limit("three", "3 per minute", by=("address", "route")))
    if not site.counts_unmatched:
        pytest.skip("this framework's middleware is not asked about unmatched paths")
    found = [site.get(f"/nothing/{n}") for n in range(4)]
    assert [answer.status for answer in found] == [404, 404, 404, 429]
    assert found[0].remaining == [2]
    assert site.get("/items/1").remaining == [2]


def test_an_exempt_page_is_neither_counted_nor_refused(make: Make) -> None:
    """``exempt`` lets a page be, above or below other decorators."""
    site = make()
    assert {site.get("/free").status for _ in range(9)} == {200}
    assert "ratelimit" not in site.get("/free").headers
    assert site.get("/items/1").remaining == [2]


def test_skip_if_lets_requests_be(make: Make) -> None:
    """What ``skip_if`` holds true for is not counted."""
    site = make(skip_if=lambda request: site.header(request, "X-Internal") == "yes")
    assert {site.get("/items/1", {"X-Internal": "yes"}).status for _ in range(9)} == {200}
    assert statuses(site, *["/items/1"] * 4) == [200, 200, 200, 429]


def test_async_functions_are_awaited_where_the_framework_is(make: Make) -> None:
    """``skip_if``, ``cost`` and attributes may be async in an asynchronous framework, and are a TypeError elsewhere."""

    async def cost(request: Any) -> int:
        return 3

    site = make(cost=cost)
    answer = site.get("/items/1")
    if site.asynchronous:
        assert (answer.status, answer.remaining) == (200, [0])
    else:
        assert answer.status == 500
        assert site.get("/health").status == 200


def test_a_request_can_cost_more(make: Make) -> None:
    """The cost is a number or a function of the framework's request; what can never fit is a 422."""
    site = make(cost=lambda request: int(site.header(request, "X-Units") or 1))
    assert site.get("/items/1", {"X-Units": "2"}).remaining == [1]
    assert site.get("/items/1", {"X-Units": "2"}).status == 429
    assert site.get("/items/1").status == 200
    never = site.get("/items/1", {"X-Units": "4"})
    assert never.status == 422
    assert "retry-after" not in never.headers
    assert statuses(make(cost=3), "/items/1", "/items/1") == [200, 429]


def test_attributes_come_from_headers_and_from_the_request(make: Make) -> None:
    """A source reads request facts, a plain function the framework's own request."""
    site = make(
        Limit("team", "1 per minute", by="team"),
        Limit("key", "2 per minute", by="api_key"),
        attributes={
            "team": lambda request: site.header(request, "X-Team"),
            "api_key": by_header("x-api-key", missing="address"),
        },
    )
    assert site.get("/items/1", {"X-Team": "red"}).remaining == [0, 1]
    assert site.get("/items/1", {"X-Team": "red"}).status == 429
    assert site.get("/items/1", {"X-Team": "blue", "X-Api-Key": "k"}).remaining == [0, 1]


def test_a_missing_identity_is_refused_where_that_is_said(make: Make) -> None:
    """Nobody goes unlimited for want of an identity: ``missing="refuse"`` is a 403 that says what is missing."""
    site = make(
        Limit("key", "2 per minute", by="api_key"), attributes={"api_key": by_header("x-key", missing="refuse")}
    )
    refused = site.get("/items/1")
    assert refused.status == 403
    assert refused.problem["detail"].startswith("This request does not say its api key.")
    assert site.get("/items/1", {"X-Key": "k"}).status == 200


def test_a_missing_identity_is_an_error_where_nothing_is_said(make: Make) -> None:
    """A function that gives no identity, without a choice, is a mistake: the request fails, it does not pass."""
    site = make(Limit("who", "2 per minute", by="who"), attributes={"who": lambda request: None})
    assert site.get("/items/1").status == 500


def test_several_limits_are_one_decision(make: Make) -> None:
    """Two limits of one limiter: both are told, and a refusal by one charges neither."""
    site = make(Limit("a", "2 per minute", by="address"), Limit("b", "9 per minute", by="address"))
    assert site.get("/items/1").remaining == [1, 8]
    assert site.get("/items/1").remaining == [0, 7]
    for _ in range(3):
        refused = site.get("/items/1")
        assert (refused.status, refused.remaining) == (429, [0, 7])


def test_a_stream_gets_its_fields_at_its_start_and_stays_a_stream(make: Make) -> None:
    """One beginning, three parts, nothing gathered up; a refusal comes instead of it."""
    site = make(Limit("one", "1 per minute", by="address"))
    answer = site.get("/stream")
    assert answer.starts == 1
    assert [part for part in answer.parts if part] == [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]
    assert answer.remaining == [0]
    assert site.get("/stream").status == 429


def test_an_exception_of_the_application_stays_one(make: Make) -> None:
    """A page that fails is charged and fails as it would without us."""
    site = make()
    assert site.get("/failing").status == 500
    assert site.get("/items/1").remaining == [1]


def test_only_failures_are_charged(make: Make) -> None:
    """``charge_if=failed``: what succeeds costs nothing in the end; errors and exceptions do."""
    site = make(charge_if=failed)
    assert {site.get("/status/200").status for _ in range(9)} == {200}
    assert statuses(site, "/status/401", "/failing", "/status/404") == [401, 500, 404]
    assert site.get("/status/200").status == 429


def test_the_actual_size_is_charged_afterwards(make: Make) -> None:
    """The estimate is charged at the start, and settled for what was sent: a page of 10 bytes, a stream of 27."""
    site = make(Limit("bytes", "100 per hour", by="address"), cost=1, actual_cost=lambda response: response.size)
    assert site.get("/status/200").remaining == [99]
    assert site.get("/stream").remaining == [89]
    assert site.get("/status/200").remaining == [62]


def test_what_cannot_be_settled_is_no_error_for_the_client(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """A store that goes away before the settling, or a function that fails, spoils no answer, and is logged."""
    site = make(charge_if=lambda response: 1 / 0)
    answer = site.get("/items/1")
    assert (answer.status, answer.error) == (200, None)
    assert "could not be settled" in caplog.text
    assert site.get("/items/1").status == 200


def test_concurrent_requests_are_counted_while_they_last(make: Make) -> None:
    """A limit on what is held at once is given back when the response has been sent, or the page has failed."""
    site = make(Limit("held", "1 at once for 1 minute", by="address"))
    assert statuses(site, "/items/1", "/stream", "/failing", "/items/1", "/status/404", "/items/1") == [
        200,
        200,
        500,
        200,
        404,
        200,
    ]


def test_the_answer_suits_its_reader(make: Make) -> None:
    """``Accept`` and ``Accept-Language`` choose the refusal's form and language."""
    site = make(Limit("one", "1 per minute", by="address"))
    site.get("/items/1")
    plain = site.get("/items/1", {"Accept": "text/plain", "Accept-Language": "de"})
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    assert plain.headers["content-language"] == "de"
    page = site.get("/items/1", {"Accept": "text/html"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"<html" in page.body


def test_older_dialects_are_sent_where_they_are_asked_for(make: Make) -> None:
    """``dialects`` chooses the syntax of the fields."""
    answer = make(dialects=("draft6",)).get("/items/1")
    assert answer.headers["ratelimit-remaining"] == "2"
    assert "ratelimit" not in answer.headers


def test_a_limiter_can_be_switched_off_and_reset_after_the_application_was_made(make: Make) -> None:
    """``isolated()`` reaches the limiters of an application that exists already."""
    from headway.testing.isolation import isolated

    site = make()
    assert site.get("/items/1").status == 200
    with isolated() as limits:
        limits.off()
        assert {site.get("/items/1").status for _ in range(20)} == {200}
        assert "ratelimit" not in site.get("/items/1").headers
        limits.on()
        assert statuses(site, *["/items/1"] * 4) == [200, 200, 200, 429]
        limits.reset()
        assert site.get("/items/1").status == 200
        limits.travel(3600)
        assert statuses(site, *["/items/1"] * 4) == [200, 200, 200, 429]
    assert site.get("/items/1").remaining == [1]


def test_options_that_cannot_be_right_are_refused_at_the_start(make: Make) -> None:
    """An unknown option and an attribute that nothing gives are errors, not requests without a limit."""

    def start(*limits: Limit, **options: Any) -> None:
        answer = make(*limits, **options).get("/items/1")  # some frameworks make their middleware now
        assert answer.error is not None
        raise answer.error

    with pytest.raises((TypeError, ValueError), match=r"(?i)skip_if"):
        start(skip_of=lambda request: False)
    with pytest.raises(ValueError, match=r"phone.*nothing gives.*known: address"):
        start(Limit("sms", "1 per day", by="phone"))
    with pytest.raises(ValueError, match=r"(?i)skip_if is 3"):
        start(skip_if=3)
    with pytest.raises(ValueError, match="charge_if and actual_cost"):
        start(charge_if=failed, actual_cost=lambda response: 1)
    with pytest.raises(ValueError, match="'health'"):
        start(exempt_paths=["health"])
