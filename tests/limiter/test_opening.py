"""A limiter as a policy file says it, in a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headway import (
    AsyncLimiter,
    ConfigError,
    Limiter,
    MemoryStore,
    UnknownName,
    open_async_limiter,
    open_limiter,
)
from headway.cli import main
from headway.testing import ManualClock, isolated

TEXT = """
store = "sqlite:///state.db"
[policies.api]
exempt = [{ account = "internal" }]
[[policies.api.limits]]
name = "per-account"
quota = { free = "2/day", pro = "9/day" }
tier = "plan"
unknown_tier = "free"
by = "account"
secret = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "limits.toml"
    found.write_text(TEXT)
    return found


def test_a_program_shares_the_counters_of_the_shell(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store, namespace, the key of secret attributes and exemptions are the file's, wherever the program runs."""
    monkeypatch.chdir("/")
    assert main(["check", "api", "account=a", "plan=free", "--policy-file", str(file)]) == 0
    with open_limiter(str(file)) as limiter:
        assert type(limiter) is Limiter
        assert limiter.hit(account="a", plan="free").remaining == 0
        assert limiter.hit(account="internal", plan="free").remaining is None
    assert main(["check", "api", "account=a", "plan=free", "--policy-file", str(file)]) == 75

    async def ask() -> bool:
        async with open_async_limiter(file, "api") as limiter:
            assert type(limiter) is AsyncLimiter
            return (await limiter.hit(account="a", plan="free")).allowed

    assert not asyncio.run(ask())


def test_a_store_may_be_given_instead(file: Path) -> None:
    """Its own store is then its opener's to close, and the file's is not touched."""
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    with open_limiter(file, store=store) as limiter:
        assert limiter.hit(account="a", plan="pro").remaining == 8
    assert open_limiter(file, store="memory://").hit(account="a", plan="pro").remaining == 8
    assert limiter.hit(account="a", plan="pro").remaining == 7
    assert not (file.parent / "state.db").exists()


def test_an_isolated_one_touches_nothing(file: Path) -> None:
    """In a test the file's store stays out of it."""
    file.write_text(TEXT.replace("secret = true\n", ""))
    with isolated() as limits:
        limiter = open_limiter(file)
        assert [limiter.hit(account="a", plan="free").allowed for _ in range(3)] == [True, True, False]
        limits.travel(86_400)
        assert limiter.hit(account="a", plan="free").allowed
    assert [path.name for path in file.parent.iterdir()] == ["limits.toml"]


def test_what_cannot_be_opened_says_why(file: Path) -> None:
    """All problems of the file at once, an unknown policy, and several where none is named."""
    for opener in (open_limiter, open_async_limiter):
        with pytest.raises(UnknownName, match="no policy is named 'apo'; known: api"):
            opener(file, "apo")
        with pytest.raises(ConfigError, match="store is 5"):
            opener(file, store=5)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="no such file"):
            opener(file.parent / "none.toml")
    file.write_text(f"{TEXT}[policies.other]\nlimits = []\n")
    with pytest.raises(ConfigError, match="holds several policies; expected one of api, other"):
        open_limiter(file)
    file.write_text(TEXT.replace("2/day", "2/dya").replace("9/day", "9/dya"))
    with pytest.raises(ConfigError) as caught:
        open_limiter(file)
    assert str(caught.value).count("limits.toml:7: policies.api.limits[0].quota.") == 2
