"""What a guard decides by itself, without a framework; and what a missing framework says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headway import AsyncLimiter, AttributeMissing, ConfigError, Limit, Limiter, MemoryStore
from headway.adapters import guard as guards
from headway.adapters.asked import Asked
from headway.adapters.drive import drive, drive_async
from headway.adapters.guard import PROBES, Guard
from headway.adapters.ledger import Ledger, ResponseFacts, failed
from headway.adapters.routes import exempt, is_exempt
from headway.adapters.sources import by_request
from headway.core.verdict import Verdict
from headway.policy.client_address import client_address
from headway.policy.request import RequestFacts
from headway.testing.clock import ManualClock


def guard_of(clock: ManualClock, *limits: Limit, **options: Any) -> Guard:
    limiter = Limiter(*limits, store=MemoryStore(clock=clock))
    return Guard(limiter, options, where="here", asynchronous=False)  # type: ignore[arg-type]  # as adapters pass them


def asked(path: str = "/", method: str = "GET", peer: str | None = "203.0.113.7", **headers: str) -> Asked:
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    forwarded = any(name in ("x-forwarded-for", "forwarded") for name, _ in fields)
    facts = RequestFacts(method=method, path=path, headers=fields, peer=peer)
    return Asked(method, path, peer, forwarded, lambda: facts)


def ask(guard: Guard, request: Asked) -> Verdict | None:
    return drive(guard.ask(request, request, Ledger()))


BY_ADDRESS = Limit("one", "1 per minute", by="address")


@pytest.mark.parametrize("path", [*PROBES, *(f"{path}/" for path in PROBES)])
def test_probes_are_exempt(clock: ManualClock, path: str) -> None:
    """Every probe's path is exempt, with a slash at its end too."""
    guard = guard_of(clock, BY_ADDRESS)
    assert [ask(guard, asked(path)) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("path", ["/healthcare", "/health/x", "/api/health", "/Health", "/health//", "/", "/healt"])
def test_what_only_resembles_a_probe_is_not(clock: ManualClock, path: str) -> None:
    """Paths are compared exactly."""
    guard = guard_of(clock, BY_ADDRESS)
    assert ask(guard, asked(path)) is None
    assert ask(guard, asked(path)) is not None


def test_fs26_a_day_of_probes_costs_nothing(clock: ManualClock) -> None:
    """Keeper-Security/Commander#2108: a probe every 10 s for a day is never refused and leaves users their whole budget."""
    guard = guard_of(
        clock,
        *(Limit(f"per-{unit}", f"{n}/{unit}", algorithm="fixed-window") for unit, n in (("minute", 60), ("day", 6000))),
    )
    for _ in range(8640):
        assert ask(guard, asked("/health", peer="127.0.0.1")) is None
        clock.advance(10)
    ledger = Ledger()
    for _ in range(50):
        ledger = Ledger()
        assert drive(guard.ask(None, asked("/", peer="127.0.0.1"), ledger)) is None
    assert ledger.decisions[0].outcomes["per-day"].remaining == 5950


@pytest.mark.parametrize(
    ("peer", "headers", "key"),
    [
        ("203.0.113.7", {}, "203.0.113.7"),
        ("203.0.113.7", {"x_forwarded_for": "10.9.9.9"}, "203.0.113.7"),
        ("10.0.0.2", {"x_forwarded_for": "6.6.6.6, 203.0.113.7"}, "203.0.113.7"),
        ("10.0.0.2", {"forwarded": "for=203.0.113.7"}, "203.0.113.7"),
        ("10.0.0.2", {}, "10.0.0.2"),
        ("::ffff:203.0.113.7", {}, "203.0.113.7"),
        ("2001:db8::9", {}, "2001:db8::/64"),
        (None, {}, "unix"),
    ],
)
def test_the_short_way_to_an_address_is_the_long_one(
    clock: ManualClock, peer: str | None, headers: dict[str, str], key: str
) -> None:
    """Whether forwarded fields are there or not, the key is the one that client_address finds."""
    guard = guard_of(clock, BY_ADDRESS, trusted_proxies=["10.0.0.0/8"])
    request = asked(peer=peer, **headers)
    assert client_address(["10.0.0.0/8"])(request.facts) == key
    assert ask(guard, request) is None
    assert isinstance(guard.limiter, Limiter)
    assert not guard.limiter.peek(address=key).allowed


def test_a_function_of_the_request_states_what_a_missing_identity_means(clock: ManualClock) -> None:
    """``by_request`` has the same three choices as every source; the default is an error, not a pass."""
    team = Limit("team", "1 per minute", by="team")

    def guard(**choice: str) -> Guard:
        return guard_of(clock, team, attributes={"team": by_request(lambda request: "", **choice)})  # type: ignore[arg-type]

    by_address = guard(missing="address")
    assert [ask(by_address, asked()) is None for _ in range(2)] == [True, False]
    assert ask(by_address, asked(peer="203.0.113.8")) is None
    refusal = ask(guard(missing="refuse"), asked())
    assert refusal is not None
    assert refusal.blocked
    with pytest.raises(AttributeMissing, match="team"):
        ask(guard(), asked())
    with pytest.raises(ConfigError, match="expected one of"):
        guard(missing="pass")


def test_a_callable_limit_sees_every_attribute(clock: ManualClock) -> None:
    """A limiter's own ``exempt`` function gets the attributes that no key is made of as well."""
    limiter = Limiter(
        BY_ADDRESS, store=MemoryStore(clock=clock), exempt=lambda attributes: attributes["plan"] == "staff"
    )
    plan = {"attributes": {"plan": lambda request: request.facts.lines("x-plan")[0]}}
    guard = Guard(limiter, plan, where="here", asynchronous=False)  # type: ignore[arg-type]
    assert [ask(guard, asked(x_plan="staff")) for _ in range(3)] == [None] * 3
    assert [ask(guard, asked(x_plan="free")) is None for _ in range(2)] == [True, False]


def test_what_failed_means() -> None:
    """Statuses from 400 and exceptions are failures."""
    assert [failed(ResponseFacts(status)) for status in (200, 304, 399, 400, 404, 503)] == [False] * 3 + [True] * 3
    assert failed(ResponseFacts(200, error=RuntimeError()))
    facts = ResponseFacts(200, (("X-Tokens", "7"), ("x-tokens", "8")))
    assert (facts.header("x-tokenS"), facts.header("x-other")) == ("7", None)


def test_nothing_is_awaited_where_nothing_can_be() -> None:
    """A driver that cannot wait names the function that is async, and leaves nothing un-awaited behind."""

    async def late() -> int:
        return 3

    def flow() -> Iterator[Any]:
        answer = yield late()
        return answer

    with pytest.raises(TypeError, match=r"late\(\) is async, and nothing can be awaited here"):
        drive(flow())  # type: ignore[arg-type]  # a generator


def test_what_is_awaited_raises_into_the_flow() -> None:
    """An error of something awaited reaches the flow, which may go on."""
    import asyncio

    async def fails() -> int:
        raise RuntimeError("late")

    def flow() -> Iterator[Any]:
        try:
            yield fails()
        except RuntimeError:
            return (yield 4)
        return 5

    assert asyncio.run(drive_async(flow())) == 4  # type: ignore[arg-type]  # a generator


@pytest.mark.parametrize(
    ("module", "package", "advice"),
    [
        ("headway.adapters.fastapi", "fastapi", "pip install 'headway[fastapi]'"),
        ("headway.adapters.flask", "flask", "pip install 'headway[flask]'"),
        ("headway.adapters.django", "django", "pip install 'headway[django]'"),
        ("headway.adapters.rest_framework", "rest_framework", "pip install djangorestframework 'headway[django]'"),
        ("headway.adapters.grpc_server", "grpc", "pip install 'headway[grpc]'"),
        ("headway.adapters.aiohttp_server", "aiohttp", "pip install 'headway[aiohttp]'"),
        ("headway.adapters.celery_tasks", "celery", "pip install 'headway[celery]'"),
        ("headway.client.transport_aiohttp", "aiohttp", "pip install 'headway[aiohttp]'"),
        ("headway.client.transport_httpx", "httpx", "pip install 'headway[httpx]'"),
        ("headway.client.transport_httpx2", "httpx2", "pip install 'headway[httpx2]'"),
        ("headway.client.transport_requests", "requests", "pip install 'headway[requests]'"),
        ("headway.client.transport_urllib3", "urllib3", "pip install urllib3"),
    ],
)
def test_a_missing_framework_names_its_extra(module: str, package: str, advice: str) -> None:
    """Without the framework, the last line says what to install."""
    program = f"import sys; sys.modules[{package!r}] = None; import {module}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1
    assert last.startswith(f"ModuleNotFoundError: {module} needs ")
    assert last.endswith(advice)


def test_middleware_for_asgi_and_wsgi_needs_nothing_installed() -> None:
    """The two, Starlette's decorator and message limits import the standard library alone."""
    program = """
import sys
before = set(sys.modules)
import headway.adapters.asgi, headway.adapters.wsgi, headway.adapters.starlette, headway.adapters.messages
own = {"headway", *sys.stdlib_module_names}
print(*sorted({name.split(".")[0] for name in set(sys.modules) - before} - own))
"""
    ran = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert [name for name in ran.stdout.split() if not name.startswith("_sysconfigdata")] == []


@pytest.mark.parametrize("options", [{}, {"charge_if": failed}], ids=["hit", "reserve"])
def test_limits_of_an_outer_guard_are_told_as_they_stand_when_an_inner_one_refuses(
    clock: ManualClock, options: dict[str, Any]
) -> None:
    """What was given back is told as not charged: the outer limit's remaining is what the next request finds."""
    outer = guard_of(clock, Limit("outer", "5 per minute", by="address"), **options)
    inner = guard_of(clock, Limit("inner", "1 per minute", by="address"))
    told = []
    for _ in range(3):
        ledger = Ledger()
        refusal = drive(outer.ask(None, asked(), ledger)) or drive(inner.ask(None, asked(), ledger))
        if refusal is not None:
            told.append(dict(zip((limit.name for limit in refusal.limits), refusal.outcomes, strict=True)))
            assert [limit.name for limit in refusal.violated] == ["inner"]
            assert '"outer";r=4' in dict(ledger.fields())["RateLimit"]
    assert isinstance(outer.limiter, Limiter)
    stands = outer.limiter.peek(address="203.0.113.7", cost=0).remaining
    assert [outcomes["outer"].remaining for outcomes in told] == [4, 4] == [stands, stands]  # type: ignore[union-attr]  # decided


def test_a_bound_method_can_be_exempt_and_what_cannot_says_so() -> None:
    """A method of an object is exempt like a function; a built-in is one clear TypeError, not a bare AttributeError."""

    class Pages:
        def free(self) -> None:
            """Nothing is counted here."""

        def __call__(self) -> None:
            """An object that is called."""

    pages, other = Pages(), Pages()
    assert exempt(pages.free) == pages.free
    assert is_exempt(pages.free)
    assert is_exempt(other.free)
    assert is_exempt(partial_of := exempt(partial(pages.free)))
    assert partial_of() is None
    assert is_exempt(exempt(pages))
    assert not is_exempt(other)
    for builtin in (len, [].append):
        with pytest.raises(TypeError, match=r"exempt cannot mark .*expected a function"):
            exempt(builtin)


def test_a_memory_store_is_not_multiplied_by_workers_unsaid(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """FS-31 (encode/django-rest-framework#6730): one warning a process that says times what; none for a shared store, or one worker."""
    guards._warn_once.cache_clear()
    limit = Limit("two", "2 per minute")
    monkeypatch.setenv("WEB_CONCURRENCY", "1")
    Guard(Limiter(limit), {}, where="here", asynchronous=False)
    monkeypatch.setenv("WEB_CONCURRENCY", "4")
    with Limiter(limit, store=f"sqlite:///{tmp_path / 'limits.db'}") as shared:
        Guard(shared, {}, where="here", asynchronous=False)
    assert not caplog.records
    for limiter in (Limiter(limit), Limiter(limit), AsyncLimiter(limit)):
        Guard(limiter, {}, where="here", asynchronous=True)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "4 workers together admit up to 4 times each limit" in warning
