"""A shadow limit that cannot say of a request: the request must not notice."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from headway import (
    AsyncLimiter,
    AttributeMissing,
    BanList,
    Limit,
    Limiter,
    MemoryStore,
    Overridden,
    ProvidedLimit,
    TieredLimit,
    When,
)
from headway.policy.choice import Choice
from headway.testing import ManualClock

REAL = Limit("real", "3 per hour", by="id")
SOON = {"shadow": True, "by": "id"}


def broken(_: object) -> str:
    """A database that is away."""
    raise OSError("no database")


async def broken_later(_: object) -> str:
    """The same, awaited."""
    raise OSError("no database")


CANNOT: dict[str, tuple[Limit | Choice, dict[str, Any]]] = {
    "no key": (Limit("trial", "1 per hour", by=("id", "phone"), shadow=True), {}),
    "a key that is none": (Limit("trial", "1 per hour", by="size", shadow=True), {"size": 1.5}),
    "no tier": (TieredLimit("trial", {"free": "1/h"}, tier="plan", by="id", shadow=True), {}),
    "an unknown tier": (TieredLimit("trial", {"free": "1/h"}, tier="plan", by="id", shadow=True), {"plan": "gold"}),
    "no condition": (When({"size": {"at_least": 5}}, Limit("trial", "1/h", shadow=True)), {}),
    "no number": (When({"size": {"at_least": 5}}, Limit("trial", "1/h", shadow=True)), {"size": "big"}),
    "no override": (Overridden(Limit("trial", "1/h", by="phone", shadow=True), {"1": "2/h"}), {}),
    "no ban": (BanList("trial", {"ip": "10.0.0.0/8"}, shadow=True), {}),
    "nothing to ask with": (ProvidedLimit("trial", broken, by="phone", default="1/h", shadow=True), {}),
    "nobody to ask": (ProvidedLimit("trial", broken, default="1/h", on_error="raise", **SOON), {}),
    "asked, and no key": (
        ProvidedLimit("trial", lambda _: "1/h", by="phone", reads=(), default="2/h", shadow=True),
        {},
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_a_shadow_limit_never_fails_a_request(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Hits, looks, waits and explanations go on without it, on memory and on a file; it is counted and said once."""
    trial, more = CANNOT[name]
    for store in (MemoryStore(clock=ManualClock()), f"sqlite:///{tmp_path / 'limits.db'}"):
        caplog.clear()
        with Limiter(trial, REAL, store=store) as ours, caplog.at_level(logging.WARNING, logger="headway"):
            assert ours.peek(id="a", **more).remaining == 2
            assert [ours.hit(id="a", **more).allowed for _ in range(2)] == [True, True]
            assert ours.wait(id="a", deadline=0, **more).allowed
            refused = ours.hit(id="a", **more)
            assert (refused.allowed, refused.limit, refused.shadowed) == (False, "real", ())
            assert "trial does not apply to this request" in str(ours.explain(id="a", **more))
            assert "trial" not in str(refused.problem()) + str(refused.headers())
            count = ours.shadow_report().of("trial")
            assert (count.requests, count.undecided) == (0, 4)
        said = [record.getMessage() for record in caplog.records if "shadow limit" in record.getMessage()]
        assert len(said) == 1
        assert said[0].startswith("shadow limit trial cannot say of a request (")


def test_the_asynchronous_twin_goes_on_without_it_too(caplog: pytest.LogCaptureFixture) -> None:
    """An async provider that fails is no failure of the request either."""
    trial = ProvidedLimit("trial", broken_later, default="1/h", on_error="raise", **SOON)

    async def ask() -> None:
        ours = AsyncLimiter(trial, REAL, store=MemoryStore(clock=ManualClock()))
        assert [(await ours.hit(id="a")).allowed for _ in range(4)] == [True, True, True, False]
        assert ours.shadow_report().of("trial").undecided == 4

    asyncio.run(ask())


def test_an_enforced_limit_still_says_what_it_lacks() -> None:
    """Only a shadow limit is excused."""
    ours = Limiter(Limit("trial", "1 per hour", by="phone", shadow=True), REAL)
    with pytest.raises(AttributeMissing, match="limit 'real' is keyed by 'id'"):
        ours.hit(phone="1")


def test_what_it_can_say_is_counted_beside_what_it_cannot() -> None:
    """The report tells the two apart, also in words and as data."""
    ours = Limiter(TieredLimit("trial", {"free": "1 per hour"}, tier="plan", **SOON), REAL, store="memory://")
    for plan in ("free", "free", "gold"):
        ours.hit(id="a", plan=plan)
    count = ours.shadow_report().of("trial")
    assert (count.requests, count.would_refuse, count.undecided) == (2, 1, 1)
    assert count.to_dict()["undecided"] == 1
    assert str(count).endswith("(1 of 1) of the callers; could not say of 1 more")
    assert (
        str(ours.shadow_report().of("trial", "(unknown)"))
        == "trial: no request of tier (unknown) so far; could not say of 1 more"
    )


def test_what_does_not_apply_is_not_undecided() -> None:
    """A condition that is not met, or a tier without a limit, is an answer."""
    ours = Limiter(
        When({"method": "POST"}, Limit("writes", "1/h", shadow=True)),
        TieredLimit("trial", {"free": "unlimited"}, tier="plan", **SOON),
        REAL,
    )
    ours.hit(id="a", method="GET", plan="free")
    assert [count.undecided for count in ours.shadow_report().counts if count.tier is None] == [0, 0]
