"""Everything that a limit may depend on, in one policy: written as TOML and in Python, on every kind of limiter."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from headway import (
    AllowList,
    AsyncLimiter,
    AttributeMissing,
    AttributeUnexpected,
    BanList,
    Limit,
    Limiter,
    MemoryStore,
    Overridden,
    TieredLimit,
    When,
)
from headway.limiter.decision import Decision
from headway.policy.toml import read_policy_text
from headway.stores.sqlite import SqliteStore
from headway.testing import ManualClock

TEXT = """
[policies.api]
exempt = [{ ip = "10.0.0.0/8" }, { account = "internal-*" }]
ban = [{ ip = ["203.0.113.*", "2001:db8:bad::/48"] }, { account = { is = "eve", missing = false } }]

[[policies.api.limits]]
name = "per-account"
quota = { free = "3/min", pro = "9/min", partner = "unlimited", ended = "block" }
tier = "plan"
unknown_tier = "refuse"
missing_tier = "free"
by = "account"
overrides = { acme = "20/min", mallory = "block", vip = "unlimited" }
when = { method = { not = "OPTIONS" } }

[[policies.api.limits]]
name = "writes"
quota = "4/min"
algorithm = "fixed-window"
by = ["account", "ip"]
when = [{ method = ["POST", "PUT"], size = { at_least = 100 } }, { method = "DELETE" }]

[[policies.api.limits]]
name = "trial"
quota = { free = "1/min", pro = "2/min" }
tier = "plan"
unknown_tier = "error"
by = "account"
when = { size = { above = 10 } }
shadow = true
"""

ALLOW = AllowList({"ip": "10.0.0.0/8"}, {"account": "internal-*"})
PARTS = (
    BanList("banned", {"ip": ["203.0.113.*", "2001:db8:bad::/48"]}, {"account": {"is": "eve", "missing": False}}),
    When(
        {"method": {"not": "OPTIONS"}},
        Overridden(
            TieredLimit(
                "per-account",
                {"free": "3/min", "pro": "9/min", "partner": "unlimited", "ended": "block"},
                tier="plan",
                by="account",
                unknown="refuse",
                missing="free",
            ),
            {"acme": "20/min", "mallory": "block", "vip": "unlimited"},
        ),
    ),
    When(
        [{"method": ["POST", "PUT"], "size": {"at_least": 100}}, {"method": "DELETE"}],
        Limit("writes", "4/min", by=("account", "ip"), algorithm="fixed-window"),
    ),
    When(
        {"size": {"above": 10}},
        TieredLimit("trial", {"free": "1/min", "pro": "2/min"}, tier="plan", by="account", shadow=True),
    ),
)

CHOICES: dict[str, list[object]] = {
    "account": ["a", "acme", "mallory", "vip", "eve", "internal-1"],
    "ip": ["192.0.2.1", "::ffff:192.0.2.1", "203.0.113.9", "::ffff:203.0.113.9", "2001:db8:bad::1", "10.1.1.1"],
    "plan": ["free", "pro", "partner", "ended", "gold", None],
    "method": ["GET", "POST", "PUT", "DELETE", "OPTIONS", "post"],
    "size": [0, "11", 100, "1e3", "big", None],
}


def requests(seed: int, count: int) -> list[dict[str, object]]:
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        picked = {name: chance.choice(values[: chance.randint(1, len(values))]) for name, values in CHOICES.items()}
        found.append({name: value for name, value in picked.items() if value is not None})
    return found


def said(decision: Decision) -> tuple[object, ...]:
    """All that a caller sees of it."""
    return (
        decision.allowed, decision.limit, decision.remaining, decision.retry_after_ns, decision.blocked,
        decision.shadowed, decision.headers(), decision.sentence(),
    )  # fmt: skip


def answers(limiter: Any, clock: ManualClock, *, steps: int) -> list[object]:
    """What comes of the same requests, errors too."""

    async def ask() -> list[object]:
        found: list[object] = []
        for number, request in enumerate(requests(steps, steps)):
            clock.advance(number % 7)
            try:
                decision = limiter.hit(request)
                found.append(said(await decision if isinstance(limiter, AsyncLimiter) else decision))
            except (AttributeMissing, AttributeUnexpected) as error:
                found.append(str(error))
        return found

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_file_and_a_program_say_the_same_of_every_request(kind: Any, place: str, tmp_path: Path) -> None:
    """Decisions, waits, fields, sentences and errors, on memory and on a file, for threads and for event loops."""
    policy = read_policy_text(TEXT, file="limits.toml", folder=tmp_path).policies().policies["api"]
    found = []
    for name, parts, exempt in (("toml", policy.limits, policy.exempt), ("python", PARTS, ALLOW)):
        clock = ManualClock()
        store = MemoryStore(clock=clock) if place == "memory" else SqliteStore(tmp_path / f"{name}.db", clock=clock)
        found.append(answers(kind(*parts, store=store, exempt=exempt), clock, steps=150))
        store.close()
    assert found[0] == found[1]
    assert {type(one) for one in found[0]} == {tuple, str}
    clock = ManualClock()
    assert answers(Limiter(*PARTS, store=MemoryStore(clock=clock), exempt=ALLOW), clock, steps=150) == found[0]
    assert policy.limits == PARTS
    assert policy.exempt == ALLOW


def test_a_shadow_among_them_changes_nothing() -> None:
    """Whatever the request lacks and however often the shadow would have refused: only ``shadowed`` tells of it."""
    clocks = ManualClock(), ManualClock()
    alone = answers(Limiter(*PARTS[:3], store=MemoryStore(clock=clocks[0]), exempt=ALLOW), clocks[0], steps=400)
    beside = answers(Limiter(*PARTS, store=MemoryStore(clock=clocks[1]), exempt=ALLOW), clocks[1], steps=400)
    without = [one if isinstance(one, str) else (*one[:5], (), *one[6:]) for one in beside]  # type: ignore[misc,index]
    assert without == alone
    assert any(one[5] for one in beside if not isinstance(one, str))  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "quotas", "left"),
    [
        ({"algorithm": "fixed-window"}, ("5/min", "9/min"), (2, 5)),
        ({"algorithm": "anchored-window"}, ("5/min", "9/min"), (2, 5)),
        ({"algorithm": "sliding-window"}, ("5/min", "9/min"), (2, 5)),
        ({"algorithm": "sliding-log"}, ("5/min", "9/min"), (2, 5)),
        ({}, ("5/day in UTC", "9/day in UTC"), (2, 5)),
        ({}, ("5/min burst 9", "5/min burst 20"), (6, 16)),
        ({}, ("5 at once for 60 s", "9 at once for 60 s"), (2, 5)),
    ],
)
@pytest.mark.parametrize("place", ["memory", "file"])
def test_a_key_that_changes_its_tier_keeps_its_counter(
    options: dict[str, str], quotas: tuple[str, str], left: tuple[int, int], place: str, tmp_path: Path
) -> None:
    """Three used as a free account are three used as a paying one, and there is no new start on the way back."""
    clock = ManualClock()
    store = MemoryStore(clock=clock) if place == "memory" else SqliteStore(tmp_path / "state.db", clock=clock)
    limiter = Limiter(
        TieredLimit("api", dict(zip(("free", "pro"), quotas, strict=True)), tier="plan", by="account", **options),  # type: ignore[arg-type]
        store=store,
    )
    for _ in range(3):
        first = limiter.hit(account="a", plan="free")
    second = limiter.hit(account="a", plan="pro")
    assert (first.remaining, second.remaining) == left
    assert limiter.hit(account="a", plan="free").remaining == left[0] - 2
    assert limiter.hit(account="b", plan="free").remaining > left[0]
    store.close()
