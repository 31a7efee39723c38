"""Our own refusals score full marks: every dialect, every adapter, the service; and what is left out costs them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web

from adapters.django_project import configured
from adapters.sites import PEER, ROUTES, WHOLE
from adapters.test_aiohttp import Running
from adapters.test_grpc import IP, KINDS, SERVERS, call, codes, running
from adapters.test_grpc import Service as GrpcService
from headway import AsyncLimiter, Limit, MemoryStore
from headway.adapters.aiohttp_server import limit, setup
from headway.analysis.lint.answer import Answer, Place
from headway.analysis.lint.audit import Report, audit
from headway.client import read
from headway.core.quota import DAY
from headway.core.verdict import Verdict
from headway.presentation.dialect import Dialect
from headway.presentation.response import Response, respond
from headway.testing.clock import ManualClock
from presentation.verdicts import NOW, random_verdicts
from service.serving import Service, serving

DIALECTS = [dialect for dialect in Dialect if dialect is not Dialect.NONE]


def audited(status: int, headers: tuple[tuple[str, str], ...], body: bytes, wants_html: bool = False) -> Report:
    """The audit of one answer."""
    heard = read(status, headers, body, received_at=NOW / 1e9)
    return audit("own", [Answer(status, headers, body, Place("own"), heard, None, "own", wants_html)])


def full(report: Report) -> None:
    """Full marks, and nothing found."""
    assert [one.rule for one in report.findings] == []
    assert report.score == 100
    assert len(report.graded) == 1


def said(verdict: Verdict, **options: Any) -> tuple[tuple[tuple[str, str], ...], Response]:
    """A refusal as a server sends it, with its Date."""
    response = respond(verdict, **options)
    return (("Date", formatdate(verdict.now // 10**9, usegmt=True)), *response.headers), response


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_scores_full_marks(dialect: Dialect) -> None:
    """Hundreds of random refusals (429, 422, 403 and 503) are without a fault in each dialect."""
    seen = set()
    for verdict in random_verdicts(7, 400):
        if not verdict.allowed and (verdict.retry_after or 0) < 10 * 365 * DAY:
            headers, response = said(verdict, dialects=dialect, cors=True)
            full(audited(response.status, headers, response.body))
            seen.add(response.status)
    assert seen == {403, 422, 429, 503}


def test_admitted_answers_have_no_fault() -> None:
    """What is added to an admitted request's answer is well-formed in each dialect."""
    for dialect in DIALECTS:
        for verdict in random_verdicts(8, 60):
            if verdict.allowed:
                headers, response = said(verdict, dialects=dialect)
                report = audited(response.status, headers, b"{}")
                assert (report.findings, report.graded) == ((), ())


def test_the_page_for_a_browser_scores_full_marks() -> None:
    """The HTML page carries the problem document, and is what its request asked for."""
    refusals = [verdict for verdict in random_verdicts(9, 80) if not verdict.allowed]
    for verdict in refusals:
        if (verdict.retry_after or 0) > 10 * 365 * DAY:
            continue
        headers, response = said(verdict, accept="text/html")
        full(audited(response.status, headers, response.body, wants_html=True))


def test_without_fields_the_limits_cannot_be_found() -> None:
    """The dialect ``none`` loses exactly the marks for limits that can be found."""
    for verdict in random_verdicts(10, 200):
        headers, response = said(verdict, dialects=Dialect.NONE)
        if response.status == 429 and (verdict.retry_after or 0) < 10 * 365 * DAY:
            report = audited(429, headers, response.body)
            assert {one.rule for one in report.findings} == {"limits-not-shown"}
            assert [mark.points for mark in report.graded[0].marks] == [5, 5, 5, 0]


@pytest.fixture(params=[*WHOLE, *ROUTES])
def site(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Any]:
    """A site in every framework, in every way of limiting it, with a limit by address and one for everybody."""
    limits = (Limit("three", "3 per minute", by="address"), Limit("everyone", "1000 per day"))
    made = {**WHOLE, **ROUTES}[request.param](request.param, limits, clock, {})
    yield made
    made.close()


def test_every_adapter_scores_full_marks(site: Any) -> None:
    """The refusal of every web adapter is without a fault, also for a script from another site."""
    for _ in range(3):
        assert site.get("/items/1", peer=PEER).status == 200
    for headers in ({}, {"Origin": "https://app.example"}):
        answer = site.get("/items/1", headers, peer=PEER)
        fields = tuple(answer.headers.items())
        full(audited(answer.status, fields, answer.body))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A real service with a limit, and one that blocks."""
    policies = """
store = "memory://"
[[policies.codes.limits]]
name = "resend"
quota = "1 per 60s"
by = "phone"
[[policies.banned.limits]]
name = "ban"
quota = "0/day"
"""
    folder: Path = tmp_path_factory.mktemp("service")
    with serving(folder, policies) as started:
        yield started


def test_the_service_scores_full_marks(service: Service) -> None:
    """The running service's 429, 422 and 403 are without a fault."""
    assert service.check(phone="1").status_code == 200
    for response, status in (
        (service.check(phone="1"), 429),
        (service.check("codes", 5, phone="2"), 422),
        (service.check("banned"), 403),
    ):
        assert response.status_code == status
        fields = tuple((name, value) for name, value in response.headers.multi_items())
        full(audited(status, fields, response.content))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", SERVERS)
def test_grpc_scores_full_marks(server: str, kind: str) -> None:
    """A refused call of each kind, on each kind of gRPC server, has full marks by its trailers."""
    store = MemoryStore(clock=ManualClock())
    with running(GrpcService(), server, IP, store=store) as address, grpc.insecure_channel(address) as channel:
        codes(channel, 2, kind)
        refused = call(channel, kind)
    fields = [("grpc-status", str(refused.code().value[0])), ("grpc-message", refused.details() or "")]
    for name, value in refused.trailing_metadata() or ():
        fields.append((name, b64encode(value).decode() if isinstance(value, bytes) else value))
    full(audited(200, tuple(fields), b""))


@pytest.mark.parametrize("way", ["setup", "decorator"])
def test_aiohttp_scores_full_marks(way: str, clock: ManualClock) -> None:
    """Aiohttp's server refuses without a fault, limited as a whole or view by view."""
    limiter = AsyncLimiter(Limit("one", "1 per minute", by="address"), store=MemoryStore(clock=clock))
    app = web.Application()

    async def view(request: web.Request) -> web.Response:
        return web.Response(text="well")

    if way == "setup":
        setup(app, limiter)
    app.router.add_get("/", limit(limiter)(view) if way == "decorator" else view)
    site = Running(app)
    try:
        assert site.get("/").status_code == 200
        answer = site.get("/")
        full(audited(answer.status_code, tuple(answer.headers.multi_items()), answer.content))
    finally:
        site.close()


def test_rest_framework_scores_full_marks(clock: ManualClock) -> None:
    """A throttle of Django REST framework, with our exception handler, refuses without a fault."""
    from django.test import Client
    from django.test.utils import override_settings
    from django.urls import path

    configured()
    from adapters.test_django import ask, throttle, view_with

    view = view_with(throttle(ask("api", "1 per minute", clock)))
    rest = {
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "EXCEPTION_HANDLER": "headway.adapters.rest_framework.exception_handler",
    }
    with override_settings(ROOT_URLCONF=(path("", view),), MIDDLEWARE=[], REST_FRAMEWORK=rest):
        assert Client().get("/").status_code == 200
        refused = Client().get("/")
    full(audited(refused.status_code, tuple(refused.headers.items()), refused.content))
