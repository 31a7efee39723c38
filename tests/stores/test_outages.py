"""Every networked store that is away, silent or black-holed: the deadline, the breaker, each limit's choice, one log line."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from headway import AsyncLimiter, Decision, FailureMode, Limit, Limiter
from servers import free_port

URLS = {
    "redis": "redis://127.0.0.1:{port}?deadline={ms}ms&share=1/4",
    "cluster": "redis+cluster://127.0.0.1:{port}?deadline={ms}ms&share=1/4",
    "sentinel": "redis+sentinel://127.0.0.1:{port}/main?deadline={ms}ms&share=1/4",
    "postgres": "postgresql://u:secret@127.0.0.1:{port}/db?deadline={ms}ms&share=1/4",
}
PATIENCE_S = 5.0
"""What a call may take beyond its deadline on a machine that has other things to do."""


@pytest.fixture(params=["nobody", "silent"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """Of nobody, or of somebody who takes connections and says nothing."""
    if request.param == "nobody":
        yield free_port()
        return
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield int(listening.getsockname()[1])


Ask = Callable[[int], Sequence[Decision]]


@pytest.fixture(params=["sync", "async"])
def asking(request: pytest.FixtureRequest) -> Callable[[Limit, str], Ask]:
    """A limiter, asked so many times in a row, with or without ``await``."""

    def made(limit: Limit, url: str) -> Ask:
        if request.param == "sync":
            limiter = Limiter(limit, store=url)
            return lambda times: [limiter.hit(id="x") for _ in range(times)]
        later = AsyncLimiter(limit, store=url)

        async def some(times: int) -> list[Decision]:
            return [await later.hit(id="x") for _ in range(times)]

        return lambda times: asyncio.run(some(times))

    return made


@pytest.mark.parametrize("kind", URLS)
@pytest.mark.parametrize("mode", list(FailureMode))
def test_each_limit_s_choice_decides(
    mode: FailureMode, kind: str, port: int, asking: Callable[[Limit, str], Ask], caplog: pytest.LogCaptureFixture
) -> None:
    """Degraded with a reason that names the place and no password; local admits this process's share; one warning in all."""
    limit = Limit("l", "8 per 365 days", by="id", on_store_failure=mode)
    with caplog.at_level(logging.INFO, "headway.stores"):
        decisions = asking(limit, URLS[kind].format(port=port, ms=50))(8)
    assert all(decision.degraded for decision in decisions)
    reasons = {decision.degraded or "" for decision in decisions}
    assert all("127.0.0.1" in reason and "secret" not in reason for reason in reasons), reasons
    assert not any("Error" in reason or "\n" in reason for reason in reasons), reasons
    wanted = {"deny": [False] * 8, "allow": [True] * 8, "local": [True] * 2 + [False] * 6}[mode]
    assert [decision.allowed for decision in decisions] == wanted
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "is away: " in warning
    assert "\n" not in warning


@pytest.mark.parametrize("kind", URLS)
def test_an_outage_costs_deadlines_then_next_to_nothing(
    kind: str, port: int, asking: Callable[[Limit, str], Ask]
) -> None:
    """FS-20: a first call takes its deadline at most; a thousand calls of an open breaker take less than a few of them."""
    ask = asking(Limit("l", "5/hour", by="id", on_store_failure="allow"), URLS[kind].format(port=port, ms=300))
    begin = time.perf_counter()
    ask(1)
    assert time.perf_counter() - begin < 0.3 + PATIENCE_S
    ask(5)
    begin = time.perf_counter()
    assert all(decision.degraded for decision in ask(1000))
    assert time.perf_counter() - begin < 3 * 0.3 + PATIENCE_S
