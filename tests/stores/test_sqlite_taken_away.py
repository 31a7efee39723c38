"""A SQLite file that is deleted, emptied, replaced or parted from its log under processes that use it.

No process dies, no decision fails, and all go on to count in one file.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway import Limit, Limiter
from headway.core.charge import Charge
from headway.stores import sqlite as module
from headway.stores.sqlite import SqliteStore

WORKER = """
import sys, time
from headway import Limit, Limiter

limiter = Limiter(Limit("l", "10000 per 365 days"), store="sqlite:///" + sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "look":
        time.sleep(0.06)  # by then the log and the index were looked at again
    decision = limiter.hit()
    print(decision.degraded or decision.remaining, flush=True)
"""


class Worker:
    """A process with a limiter on the file, which hits when it is told to."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._said() == "ready"

    def hit(self, word: str = "hit") -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        """Its exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(20)
        self.process.stdout.close()
        return code


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.db"


@pytest.fixture
def workers(path: Path) -> Iterator[list[Worker]]:
    """Three that have charged one unit each."""
    some = [Worker(path) for _ in range(3)]
    try:
        assert [worker.hit() for worker in some] == ["9999", "9998", "9997"]
        yield some
    finally:
        for worker in some:
            worker.process.send_signal(signal.SIGKILL)
            worker.end()


def beside(path: Path, *ends: str) -> list[Path]:
    return [path.with_name(path.name + end) for end in ends]


TAKEN: dict[str, Callable[[Path], None]] = {
    "the file": lambda path: path.unlink(),
    "the file and its log": lambda path: [file.unlink() for file in beside(path, "", "-wal")].clear(),
    "all": lambda path: [file.unlink() for file in beside(path, "", "-wal", "-shm")].clear(),
    "the log": lambda path: [file.unlink() for file in beside(path, "-wal")].clear(),
    "the index": lambda path: [file.unlink() for file in beside(path, "-shm")].clear(),
    "the log and the index": lambda path: [file.unlink() for file in beside(path, "-wal", "-shm")].clear(),
    "what is in it": lambda path: os.truncate(path, 0),
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a system where an open file can be deleted")
@pytest.mark.parametrize("what", TAKEN)
def test_whatever_is_taken_away_all_count_in_one_file_again(what: str, path: Path, workers: list[Worker]) -> None:
    """No decision fails, nobody counts in a file that is gone, and no process takes the new file's log with it as it ends."""
    TAKEN[what](path)
    told = [worker.hit("look") for worker in workers] + [worker.hit() for worker in workers]
    assert all(word.isdigit() for word in told), told
    first = int(told[0])
    assert [int(word) for word in told] == list(range(first, first - 6, -1))
    assert first == 9999 or "file" not in what
    assert workers.pop().end() == 0
    newcomer = Worker(path)
    told = [newcomer.hit(), *[worker.hit() for worker in workers]]
    assert [int(word) for word in told] == list(range(first - 6, first - 9, -1))
    workers.append(newcomer)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a system where an open file can be replaced")
def test_a_log_of_the_file_before_is_never_taken_for_the_new_ones(
    path: Path, tmp_path: Path, workers: list[Worker]
) -> None:
    """A backup that is moved over the file alone, beside the old one's log and index, counts on from what is in it."""
    backup = tmp_path / "backup.db"
    with Limiter(Limit("l", "10000 per 365 days"), store=f"sqlite:///{backup}") as other:
        assert other.hit(cost=5_000).allowed
    shutil.move(backup, path)
    told = [worker.hit() for worker in workers] + [worker.hit() for worker in workers]
    assert told == ["4999", "4998", "4997", "4996", "4995", "4994"]


def test_an_empty_file_at_the_start_is_no_loss(path: Path) -> None:
    """A file that was made empty beforehand, such as by a mount of a container, is used as it is: it stays the same file."""
    path.touch()
    number = path.stat().st_ino
    store = SqliteStore(path)
    assert store.advance([Charge("default", Limit("l", "5/hour"), "", 1)]).allowed
    assert path.stat().st_ino == number
    store.close()


def test_a_file_that_fails_is_told_once_and_so_is_its_return(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is let through meanwhile is no secret: one warning an outage, one line at its end, counters for all."""
    monkeypatch.setattr(module, "_CALM_S", 0.0)
    limit = Limit("l", "9 per 365 days", on_store_failure="allow")
    store = SqliteStore(path)
    limiter = Limiter(limit, store=store)
    with caplog.at_level(logging.INFO, "headway.stores"):
        for outage in (1, 2):
            assert not limiter.hit().degraded
            path.with_name("away").mkdir(exist_ok=True)
            for file in path.parent.glob("limits.db*"):
                file.rename(path.with_name("away") / file.name)
            path.mkdir()
            assert all("is a folder" in (limiter.hit().degraded or "") for _ in range(5))
            path.rmdir()
            assert not limiter.hit().degraded
            assert (store.breaker.outages, store.breaker.failed_count) == (outage, 5 * outage)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"] * 2
    assert caplog.messages[0] == (
        f"SQLite store {path} is away: is a folder; expected a file; on_store_failure decides until it is back"
    )
    assert caplog.messages[1] == f"SQLite store {path} is back"
    store.close()


def test_one_damaged_row_is_no_outage(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It fails its own key's decisions, and the log is not filled by them."""
    store = SqliteStore(path)
    limiter = Limiter(Limit("l", "9 per 365 days", by="id"), store=store)
    limiter.hit(id="x")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE headway_state SET state = 'nonsense'")
    connection.close()
    assert "nobody wrote" in (limiter.hit(id="x").degraded or "")
    assert not limiter.hit(id="y").degraded
    assert caplog.messages == []
    assert store.breaker.outages == 0
    store.close()


def test_looks_that_succeed_between_charges_that_fail_end_no_outage(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On a disk that is full the log is not filled by every other request."""
    store = SqliteStore(path)
    limiter = Limiter(Limit("l", "999999 per 365 days", by="id", on_store_failure="allow"), store=store)
    assert not limiter.hit(id="first").degraded
    connection = store._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 1")
    failed = 0
    for number in range(200):
        failed += "full" in (limiter.hit(id=f"key {number}").degraded or "")
        if store._connection is not None:
            store._connection.execute("PRAGMA max_page_count = 1")
        assert not limiter.peek(id="first").degraded
        assert store._connection is not None
        store._connection.execute("PRAGMA max_page_count = 1")
    assert failed > 1
    assert len(caplog.messages) == 1
    store.close()
