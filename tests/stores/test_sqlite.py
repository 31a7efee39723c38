"""The SQLite store: one file shared by processes, whatever happens to them and to it.

HEADWAY_TESTS_LONG=1 kills two hundred writers instead of twenty.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.core.quota import SECOND
from headway.errors import StoreUnavailable, StoreUnusable
from headway.limiter.limiter import Limiter
from headway.stores import sqlite as module
from headway.stores.sqlite import APPLICATION_ID, SCHEMA_VERSION, SqliteStore
from headway.testing.clock import ManualClock
from length import LONG

HUNDRED = Limit("hundred", "100 per 365 days", by="id")
SHORT = Limit("short", "1/s", by="id")
ROUNDS = 200 if LONG else 20


def charge(limit: Limit = HUNDRED, key: str = "k", cost: int = 1) -> Charge:
    return Charge("n", limit, key, cost)


def admitted(store: SqliteStore, calls: int, limit: Limit = HUNDRED) -> int:
    return sum(store.advance([charge(limit)]).allowed for _ in range(calls))


def in_child(work: Callable[[], int]) -> int:
    """Run ``work`` in a forked child; its answer (0 to 250), or an AssertionError where it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(work())
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code != 255
    return code


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.db"


def rows(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        count: int = connection.execute("SELECT count(*) FROM headway_state").fetchone()[0]
    connection.close()
    return count


# What the file is


def test_a_fresh_file_says_whose_it_is(path: Path) -> None:
    """The file carries our application id, a schema version and write-ahead logging, from the first moment."""
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()


def test_state_outlives_the_process(path: Path) -> None:
    """What one process spent, the next finds spent."""
    code = f"from headway import *; print(Limiter(Limit('hundred', '100 per 365 days', by='id'), store='sqlite:///{path}').hit(id='k', cost=60).allowed)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
    limiter = Limiter(HUNDRED, store=f"sqlite:///{path}")
    assert limiter.peek(id="k", cost=0).remaining == 40
    limiter.close()


def test_a_refusal_leaves_every_stored_byte_as_it_was(path: Path, clock: ManualClock) -> None:
    """Rows before and after a refused bill are identical, although another of its limits would have admitted."""
    store = SqliteStore(path, clock=clock)
    store.advance([charge(SHORT), charge(HUNDRED)])
    before = _dump(path)
    for cost in (1, 2):
        assert not store.advance([charge(HUNDRED), charge(SHORT, cost=cost)]).allowed
    store.advance([charge(HUNDRED), charge(SHORT)], commit=False)
    store.advance([charge(HUNDRED, cost=0), charge(SHORT, cost=0)])
    assert _dump(path) == before
    store.close()


def _dump(path: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM headway_state ORDER BY key").fetchall()
    connection.close()
    return found


def test_recovered_rows_go_by_themselves(path: Path, clock: ManualClock) -> None:
    """After ten thousand keys that recovered, the file holds a small part of them, and no key that owes is gone."""
    store = SqliteStore(path, clock=clock)
    assert store.advance([charge(HUNDRED, "owes", 100)]).allowed
    for number in range(2000):
        store.advance([charge(SHORT, f"k{number}")])
        clock.advance(ns=SECOND // 20)
    assert rows(path) < 150
    assert not store.advance([charge(HUNDRED, "owes")]).allowed
    store.close()


# What it must not be


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, whatever its name says\n" * 200)


def _short_garbage(path: Path) -> None:
    path.write_bytes(b"hello")


def _directory(path: Path) -> None:
    path.mkdir()


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()


def _foreign_marked(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 252006673")  # Fossil's
    connection.close()


def _newer(path: Path) -> None:
    SqliteStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_garbage, "is no SQLite database"),
        (_short_garbage, "is no SQLite database"),
        (_directory, "is a folder; expected a file"),
        (_foreign, "is another program's database"),
        (_foreign_marked, "is another program's database"),
        (
            _newer,
            f"has schema version {SCHEMA_VERSION + 1}, written by a newer headway; this one knows {SCHEMA_VERSION}",
        ),
    ],
)
def test_what_is_no_database_of_ours_is_refused_and_left_alone(
    make: Callable[[Path], None], says: str, path: Path
) -> None:
    """Garbage, a folder, another program's database, a newer schema: one clear error at once, not a byte changed."""
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreUnusable, match=says) as caught:
        SqliteStore(path)
    assert str(path) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_an_empty_file_becomes_ours(path: Path) -> None:
    """Mktemp and touch make empty files: there is nothing in them to respect."""
    path.touch()
    store = SqliteStore(path)
    assert admitted(store, 1) == 1
    store.close()


@pytest.mark.parametrize("name", ["n" * 300, "a\0b"], ids=["too long", "with a NUL"])
def test_a_name_that_no_file_can_have_is_a_store_error(tmp_path: Path, name: str) -> None:
    """Not the system's error, nor a ValueError."""
    with pytest.raises(StoreUnusable, match="cannot be opened for writing"):
        SqliteStore(tmp_path / name)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The folder is not created behind the operator's back; the error says which one is missing."""
    with pytest.raises(StoreUnusable, match=r"the folder .*nowhere does not exist; create it first"):
        SqliteStore(tmp_path / "nowhere" / "limits.db")
    with pytest.raises(StoreUnusable, match=r"limits\.db"):
        Limiter(HUNDRED, store=f"sqlite:///{tmp_path}/no/limits.db")


as_root = hasattr(os, "geteuid") and os.geteuid() == 0


def _as_nobody(work: Callable[[], int]) -> int:
    """Permissions do not bind root: run as an unprivileged user where the tests run as root."""

    def drop() -> int:
        if as_root:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return in_child(drop)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("what", ["file", "folder", "folder of an existing file"])
def test_what_cannot_be_written_is_one_clear_error(what: str, tmp_path: Path) -> None:
    """A read-only file or folder raises ``StoreUnusable`` when the store is opened, naming the path."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "limits.db"
    if what != "folder":
        SqliteStore(path).close()
    for parent in (folder, *folder.parents):  # let an unprivileged user see the file at all
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(0o755)
    if what != "folder":
        path.chmod(0o444)
    folder.chmod(0o555)

    def work() -> int:
        try:
            SqliteStore(path)
        except StoreUnusable as error:
            return 0 if str(path) in str(error) and "cannot be opened for writing" in str(error) else 2
        return 1

    try:
        assert _as_nobody(work) == 0
    finally:
        folder.chmod(0o755)


# What happens to it while it is open


def test_a_file_deleted_while_open_is_begun_anew_by_everybody(path: Path) -> None:
    """After an operator deletes the file, all stores agree on the new one instead of counting in a vanished one."""
    stores = [SqliteStore(path), SqliteStore(path)]
    assert [admitted(store, 50) for store in stores] == [50, 50]
    for file in path.parent.iterdir():
        file.unlink()
    assert sum(admitted(store, 80) for store in stores) == 100
    assert path.exists()
    assert rows(path) == 1
    for store in stores:
        store.close()


def test_a_file_replaced_while_open_is_the_one_that_counts(path: Path, tmp_path: Path) -> None:
    """A backup moved over the file is used from the next decision on."""
    store = SqliteStore(path)
    admitted(store, 10)
    store.close()
    backup = tmp_path / "backup.db"
    shutil.copy(path, backup)
    assert admitted(store, 70) == 70
    for file in path.parent.glob("limits.db*"):
        file.unlink()
    backup.rename(path)
    assert admitted(store, 200) == 90
    store.close()


def test_a_folder_that_vanishes_is_a_store_error_and_its_return_mends_it(path: Path, tmp_path: Path) -> None:
    """No sqlite3 exception reaches the caller, and no restart is needed afterwards."""
    home = tmp_path / "home"
    home.mkdir()
    store = SqliteStore(home / "limits.db")
    shutil.rmtree(home)
    for _ in range(3):
        with pytest.raises((StoreUnusable, StoreUnavailable)):
            store.advance([charge()])
    home.mkdir()
    assert admitted(store, 150) == 100
    store.close()


def test_a_full_disk_is_a_store_error_that_charges_nothing(path: Path, clock: ManualClock) -> None:
    """SQLITE_FULL becomes ``StoreUnavailable``; existing keys are still decided, and room mends it."""
    store = SqliteStore(path, clock=clock)
    assert store._connection is not None
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    long = "x" * 2000
    with pytest.raises(StoreUnavailable, match=r"limits\.db.*full"):
        for number in range(100):
            store.advance([charge(HUNDRED, f"{number}{long}")])
            full_at = number + 1
    assert rows(path) == full_at, "the decision that failed wrote nothing"
    assert store.advance([charge(HUNDRED, f"{full_at}{long}")]).allowed, "a new connection has room again"
    store.close()


def test_a_damaged_file_is_a_store_error(path: Path) -> None:
    """A file overwritten under the store's feet raises a store error, not sqlite3's, and says which file."""
    store = SqliteStore(path)
    admitted(store, 5)
    store.close()
    with path.open("r+b") as file:
        file.seek(0)
        file.write(b"\xff" * 8192)
    with pytest.raises((StoreUnusable, StoreUnavailable), match=r"limits\.db"):
        store.advance([charge()])


def test_the_error_of_a_store_decides_by_the_limits_choice(path: Path) -> None:
    """A limiter over a damaged file denies or allows as its limit says, and says that it is degraded."""
    for mode in ("deny", "allow", "local"):
        limiter = Limiter(Limit("l", "1 per day", by="id", on_store_failure=mode), store=f"sqlite:///{path}")
        limiter.close()
        _garbage(path)
        first, second = limiter.hit(id="k"), limiter.hit(id="k")
        assert [first.allowed, second.allowed] == {
            "deny": [False, False],
            "allow": [True, True],
            "local": [True, False],
        }[mode]
        assert first.degraded
        assert "no SQLite database" in first.degraded
        path.unlink()


# Locks


def test_a_short_lock_of_another_process_is_waited_out(path: Path) -> None:
    """While somebody else writes, a caller waits instead of seeing "database is locked"."""
    store = SqliteStore(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    release.start()
    assert admitted(store, 1) == 1
    release.join()
    other.close()
    store.close()


def test_a_lock_that_never_ends_is_a_store_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its own deadline the store gives up with ``StoreUnavailable``; nothing was charged."""
    store = SqliteStore(path)
    monkeypatch.setattr(module, "LOCK_WAIT_S", 0.2)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreUnavailable, match="locked"):
        store.advance([charge()])
    other.execute("COMMIT")
    other.close()
    assert store.advance([charge(cost=0)]).outcomes[0].remaining == 100
    store.close()


def test_a_peek_needs_no_write_lock(path: Path) -> None:
    """Looking works while another process holds the lock for writing."""
    store = SqliteStore(path)
    admitted(store, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    assert store.advance([charge()], commit=False).outcomes[0].remaining == 98
    assert time.monotonic() - begin < 2
    other.execute("COMMIT")
    other.close()
    store.close()


# Copies, threads and forks


def test_a_pickled_store_opens_the_same_file(path: Path, clock: ManualClock) -> None:
    """A copy in another process shares the counters."""
    store = SqliteStore(path)
    assert admitted(store, 60) == 60
    twin = pickle.loads(pickle.dumps(store))
    assert twin.path == store.path
    assert admitted(twin, 60) == 40
    store.close()
    twin.close()


def test_close_can_be_repeated_and_undone(path: Path) -> None:
    """Closing twice does nothing more; a decision after it opens the file again."""
    store = SqliteStore(path)
    assert admitted(store, 10) == 10
    store.close()
    store.close()
    assert admitted(store, 100) == 90
    store.close()


def test_a_store_made_in_one_thread_works_in_another(path: Path) -> None:
    """No ProgrammingError about threads, and closing from a third is fine."""
    store = SqliteStore(path)
    found: list[int] = []
    for work in (lambda: found.append(admitted(store, 5)), store.close, lambda: found.append(admitted(store, 100))):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [5, 95]
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_share_the_budget_and_survive_their_parents_closing(path: Path) -> None:
    """A parent that closes after a fork takes nothing away from a child, and a newcomer sees what the child spent."""
    store = SqliteStore(path)
    assert admitted(store, 1) == 1
    to_parent, from_child = os.pipe()
    to_child, from_parent = os.pipe()

    def work() -> int:
        first = admitted(store, 10)
        os.write(from_child, b"1")
        os.read(to_child, 1)  # the parent has closed now
        second = admitted(store, 50)
        os.write(from_child, b"2")
        os.read(to_child, 1)  # the newcomer has counted
        return first + second

    pid = os.fork()
    if pid == 0:
        os._exit(work())
    try:
        os.read(to_parent, 1)
        store.close()
        os.write(from_parent, b"1")
        os.read(to_parent, 1)
        newcomer = SqliteStore(path)
        assert admitted(newcomer, 100) == 100 - 1 - 60
        newcomer.close()
    finally:
        os.write(from_parent, b"22")  # whatever failed here, the child ends
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for end in (to_parent, from_child, to_child, from_parent):
            os.close(end)
    assert code == 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is what is tested
def test_a_fork_in_the_middle_of_other_threads_decisions_leaves_no_lock_behind(path: Path) -> None:
    """However busy the parent's threads are, a forked child decides at once, and together they keep to the budget."""
    many = Limit("many", "100000 per 365 days", by="id")
    store = SqliteStore(path)
    stop = threading.Event()
    spent = [0, 0, 0]

    def work(index: int) -> None:
        while not stop.is_set():
            spent[index] += admitted(store, 1, many)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for worker in workers:
        worker.start()
    try:
        children = sum(in_child(lambda: admitted(store, 20, many)) for _ in range(10))
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert children == 200
    assert store.advance([charge(many, cost=0)]).outcomes[0].remaining == 100_000 - 200 - sum(spent)
    store.close()


# Killed at any moment

VICTIM = """
import sys
from headway import Limit, Limiter
store = "sqlite:///" + sys.argv[1]
limiter = Limiter(Limit("many", "1000000 per 365 days", by="id"), Limit("second", "1000000 per 365 days"), store=store)
tight = Limiter(Limit("tight", sys.argv[2] + " per 365 days", by="id"), store=store)
def answer(name, decision):
    sys.stdout.write(f"{name} {decision.degraded or decision.allowed}\\n")
    sys.stdout.flush()
print("ready", flush=True)
while True:
    answer("many", limiter.hit(id="k"))
    answer("tight", tight.hit(id="k"))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_minus_nine_at_any_moment_loses_no_decision_that_was_given(path: Path) -> None:
    """Writers are killed over and over in mid-stride: no damage, no stuck lock, both limits charged alike, none lost.

    Each kill loses at most the answer that is under way, and a budget that runs out on the way is never exceeded.
    """
    budget = 15 * ROUNDS
    limits = [
        Limit("many", "1000000 per 365 days", by="id"),
        Limit("second", "1000000 per 365 days"),
        Limit("tight", f"{budget} per 365 days", by="id"),
    ]
    told: Counter[bytes] = Counter()
    kills = 0
    for number in range(ROUNDS):
        writers = [
            subprocess.Popen([sys.executable, "-c", VICTIM, str(path), str(budget)], stdout=subprocess.PIPE)
            for _ in range(1 + number % 3)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            told.update(writer.stdout.readline() for _ in range(5 + number * 7 % 40))  # each time at another place
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            kills += 1
        for writer in writers:
            with writer:
                assert writer.stdout is not None
                told.update(line for line in writer.stdout if line.endswith(b"\n"))
        limiter = Limiter(
            *limits, store=f"sqlite:///{path}"
        )  # nobody has the file open: what is left of it is recovered
        decision = limiter.peek(id="k", cost=0)
        limiter.close()
        many, second, tight = (limit.quota.count - decision.outcomes[limit.name].remaining for limit in limits)
        assert many == second, "all or nothing, also when killed"
        assert told[b"many True\n"] <= many <= told[b"many True\n"] + kills, (
            "each kill loses at most the answer under way"
        )
        assert told[b"tight True\n"] <= tight <= told[b"tight True\n"] + kills
        assert told[b"tight True\n"] <= budget
    assert told[b"tight False\n"] > 0, "the budget has run out"
    answers = {b"many True\n", b"tight True\n", b"tight False\n"}
    assert all(b"locked" in line for line in told.keys() - answers), "but a machine may be too busy for a turn in 5 s"
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


@pytest.mark.parametrize("algorithm", ["gcra", "fixed-window"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_decision_is_not_dated_before_what_it_sees(
    path: Path, clock: ManualClock, algorithm: str, count: int
) -> None:
    """Another process is admitted just when this one looks at the clock: each remaining is told once, none twice."""
    limits = [Limit(f"l{number}", "9 per 365 days", by="id", algorithm=algorithm) for number in range(count)]
    other = Limiter(*limits, store=SqliteStore(path, clock=clock))
    told: list[int | None] = []

    def looked_at() -> int:
        found = clock()
        if not told:
            clock.advance(5)
            told.append(other.hit(id="k").remaining)
        return found

    for ask in ("hit", "peek"):
        limiter = Limiter(*limits, store=SqliteStore(path, clock=looked_at))
        told.append(getattr(limiter, ask)(id="k").remaining)
    assert told == [8, 7, 6]
