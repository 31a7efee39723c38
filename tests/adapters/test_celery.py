"""Celery tasks, limited, run by real workers: one in a thread on a broker in memory, two processes on one in files."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import before_task_publish

from headway import AsyncLimiter, ConfigError, Limit, Limiter, LimitError, MemoryStore, RateLimited
from headway.adapters.celery_tasks import come_back, limit
from headway.testing import ManualClock
from servers import redis_server

PATIENCE_S = 60


@pytest.fixture
def app() -> Iterator[Celery]:
    """An application on a broker and a backend in memory."""
    app = Celery("tests", broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.update(
        worker_hijack_root_logger=False,
        worker_log_color=False,
        task_default_queue="limited",
        worker_enable_remote_control=False,
    )
    app.conf.broker_transport_options = {"polling_interval": 0.02}
    yield app
    with app.connection_for_write() as connection:
        connection.default_channel.queue_purge("limited")
    app.close()


@contextmanager
def working(app: Celery) -> Iterator[None]:
    """A worker in a thread. It sets the root logger's level and leaves it so: other tests want to hear warnings."""
    level = logging.root.level
    try:
        with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=PATIENCE_S):
            yield
    finally:
        logging.root.setLevel(level)


def test_a_refused_task_comes_back_when_it_may_run(app: Celery) -> None:
    """Of three tasks at once one runs, and the others run when the limit lets them, not earlier and not lost."""
    limiter = Limiter(Limit("pace", "1 per 800 ms"))
    ran: list[float] = []

    @app.task(shared=False)
    @limit(limiter, jitter=0.1)
    def note(name: str) -> str:
        ran.append(time.monotonic())
        return name

    with working(app):
        results = [note.delay(name) for name in "abc"]
        assert [result.get(timeout=PATIENCE_S) for result in results] == ["a", "b", "c"]
    gaps = [later - earlier for earlier, later in zip(sorted(ran), sorted(ran)[1:], strict=False)]
    assert len(ran) == 3
    assert all(gap > 0.4 for gap in gaps), gaps  # a task may begin a while after it was let through


class Sent:
    """What was sent to the broker, instead of waiting for it: the real worker's Retry, seen from outside."""

    def __init__(self, app: Celery) -> None:
        self.headers: list[dict[str, Any]] = []
        before_task_publish.connect(self._seen, weak=False)

    def _seen(self, headers: Any = None, **_: Any) -> None:
        self.headers.append(dict(headers))

    def __enter__(self) -> Sent:
        return self

    def __exit__(self, *_: object) -> None:
        before_task_publish.disconnect(self._seen)

    def countdowns(self) -> list[float]:
        """Seconds from now until each message that has a time."""
        now = datetime.now().astimezone()
        return [(datetime.fromisoformat(one["eta"]) - now).total_seconds() for one in self.headers if one["eta"]]


def test_the_countdown_is_the_exact_wait(app: Celery, clock: ManualClock) -> None:
    """Without jitter the countdown is the wait, rounded up to the ms; the task is RETRY, and spends no retry of its own."""
    limiter = Limiter(Limit("per-account", "1 per hour", by="account"), store=MemoryStore(clock=clock))
    limiter.hit(account="a")
    clock.advance(1000)

    @app.task(max_retries=0, shared=False)
    @limit(limiter, account="customer", jitter=0)
    def charge(customer: str) -> None:
        raise AssertionError("it must not run")

    with Sent(app) as sent, working(app):
        result = charge.delay("a")
        _until(lambda: result.state == "RETRY")
        (countdown,) = sent.countdowns()
    assert 2600 - 10 < countdown <= 2600
    assert sent.headers[-1]["retries"] == 0
    assert sent.headers[-1]["id"] == result.id
    assert "Try again in 44 minutes." in str(result.result)


@pytest.mark.parametrize(("longest", "low", "high"), [(None, 3600, 5400), (600.0, 590, 600)])
def test_jitter_only_lengthens_and_a_longest_wait_asks_again(
    app: Celery, clock: ManualClock, longest: float | None, low: float, high: float
) -> None:
    """Jitter makes a wait longer by at most its share; ``longest`` cuts it for brokers that would deliver it twice."""
    limiter = Limiter(Limit("all", "1 per hour"), store=MemoryStore(clock=clock))
    limiter.hit()

    @app.task(shared=False)
    @limit(limiter, jitter=0.5, longest=longest)
    def work() -> None:
        raise AssertionError("it must not run")

    with Sent(app) as sent, working(app):
        results = [work.delay() for _ in range(5)]
        _until(lambda: all(result.state == "RETRY" for result in results))
        found = sent.countdowns()
    assert len(found) == 5
    assert all(low - 10 < countdown <= high for countdown in found), found
    if longest is None:
        assert max(found) - min(found) > 1  # they do not come back together


def test_a_task_that_no_wait_helps_fails(app: Celery) -> None:
    """A cost above the burst fails at once, with the decision, instead of coming back for ever."""
    limiter = Limiter(Limit("size", "3 per minute"))

    @app.task(shared=False)
    @limit(limiter, cost=lambda call: len(call["items"]))
    def send(items: list[int]) -> int:
        return len(items)

    with working(app):
        assert send.delay([1, 2]).get(timeout=PATIENCE_S) == 2
        with pytest.raises(Exception, match="at most 3 are ever possible"):
            send.delay([1, 2, 3, 4]).get(timeout=PATIENCE_S)


def test_the_tasks_own_retries_stay_its_own(app: Celery) -> None:
    """Waiting for its turn takes none of the retries that a task has for its failures."""
    limiter = Limiter(Limit("pace", "1 per 100 ms"))
    tries: list[int] = []

    @app.task(bind=True, max_retries=2, shared=False)
    @limit(limiter)
    def shaky(self: Any) -> str:
        tries.append(self.request.retries)
        if len(tries) < 3:
            raise self.retry(countdown=0)
        return "done"

    with working(app):
        assert shaky.delay().get(timeout=PATIENCE_S) == "done"
    assert tries == [0, 1, 2]


def test_a_failing_task_gives_its_lease_back(app: Celery) -> None:
    """A limit of one at once holds as long as the task runs, and ends with it, however it ends."""
    limiter = Limiter(Limit("at-once", "1 at once for 60 s"))

    @app.task(shared=False)
    @limit(limiter)
    def fail() -> None:
        assert not limiter.peek().allowed
        raise RuntimeError("the task fails")

    with working(app):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="the task fails"):
                fail.delay().get(timeout=PATIENCE_S)
    assert limiter.peek().allowed


def test_a_task_may_ask_by_itself(app: Celery) -> None:
    """``come_back`` brings a task back that has asked the limiter in its own code."""
    limiter = Limiter(Limit("pace", "1 per 100 ms"))

    @app.task(shared=False)
    def work() -> str:
        decision = limiter.hit()
        if not decision.allowed:
            raise come_back(decision)
        return "done"

    with working(app):
        assert [one.get(timeout=PATIENCE_S) for one in [work.delay(), work.delay()]] == ["done", "done"]


def test_without_a_worker_a_refusal_is_raised(app: Celery) -> None:
    """A task that is called, or eager, raises ``RateLimited``: nobody could bring it back."""
    limiter = Limiter(Limit("one", "1 per hour"))

    @app.task(shared=False)
    @limit(limiter)
    def work() -> str:
        return "done"

    assert work() == "done"
    with pytest.raises(RateLimited, match="Try again in 60 minutes"):
        work()
    with pytest.raises(RateLimited):
        work.apply(throw=True)
    with pytest.raises(RateLimited):
        raise come_back(limiter.hit())


def test_arguments_are_checked_as_before(app: Celery) -> None:
    """A limited task has its function's signature, so Celery refuses wrong arguments before they are sent."""
    limiter = Limiter(Limit("one", "1 per hour", by="account"))

    @app.task(shared=False)
    @limit(limiter)
    def work(account: str) -> None: ...

    with pytest.raises(TypeError):
        work.delay("a", "b")
    assert work.name.endswith("work")


def test_what_cannot_be_right_is_said_at_once() -> None:
    """A limiter that must be awaited, an attribute that nothing gives, and waits that cannot be are named at once."""
    with pytest.raises(TypeError, match="is of type AsyncLimiter; expected Limiter"):
        limit(AsyncLimiter(Limit("one", "1 per hour")))  # type: ignore[arg-type]  # that is the point
    with pytest.raises(LimitError, match="has no parameter 'account'"):
        limit(Limiter(Limit("one", "1 per hour", by="account")))(lambda customer: None)
    for jitter in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="jitter"):
            limit(Limiter(Limit("one", "1 per hour")), jitter=jitter)
    with pytest.raises(ConfigError, match=r"longest: 0; expected seconds above 0"):
        limit(Limiter(Limit("one", "1 per hour")), longest=0)


WORKER = """
import os, sys, time
from celery import Celery
from headway import Limit, Limiter
from headway.adapters.celery_tasks import limit

folder, broker = sys.argv.pop(), sys.argv.pop()
app = Celery("fleet", broker=broker)
app.conf.update(worker_prefetch_multiplier=1, task_ignore_result=True, worker_enable_remote_control=False)
limiter = Limiter(Limit("fleet", "4 per second burst 2"), store=f"sqlite:///{folder}/limits.db")

@app.task(name="note")
@limit(limiter, jitter=0.2)
def note(n):
    with open(folder + "/ran", "a") as file:
        file.write(f"{time.time()} {os.getpid()} {n}\\n")

if __name__ == "__main__":
    app.worker_main(["worker", "-P", "solo", "-l", "error", "--without-gossip", "--without-mingle", "--without-heartbeat"])
"""


def test_the_limit_holds_over_all_workers(tmp_path: Path) -> None:
    """Two worker processes together run no more tasks than the limit allows, and lose none."""
    (tmp_path / "worker.py").write_text(WORKER)
    send = "import worker\nfor n in range(8): worker.note.delay(n)\n"
    with redis_server("redis-6.2") as broker, ExitStack() as workers:
        told = [f"redis://127.0.0.1:{broker.port}", str(tmp_path)]
        for _ in range(2):
            command = [sys.executable, "worker.py", *told]
            worker = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            workers.callback(worker.wait, 30)
            workers.callback(worker.terminate)
        subprocess.run([sys.executable, "-c", send, *told], check=True, timeout=60, cwd=tmp_path)
        _until(lambda: len(_ran(tmp_path)) >= 8, patience=60)
    ran = sorted(_ran(tmp_path))
    assert sorted(n for _, _, n in ran) == list(range(8))
    for first, (start, _, _) in enumerate(ran):
        for last in range(first, len(ran)):
            elapsed = ran[last][0] - start
            assert last - first + 1 <= 2 + 4 * elapsed + 2, ran  # burst + rate, and half a second to write a line


def _ran(folder: Path) -> list[tuple[float, int, int]]:
    path = folder / "ran"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(float(at), int(pid), int(n)) for at, pid, n in (line.split() for line in lines)]


def _until(true: Any, patience: float = PATIENCE_S) -> None:
    """Ask until it is true, for so many seconds."""
    pause = threading.Event()
    for _ in range(round(patience * 50)):
        if true():
            return
        pause.wait(0.02)
    raise AssertionError(f"not true within {patience} seconds")
