"""Field reports about processes that share a store, or do not, each named for what must not happen.

Those of one kind of server live in its folder, with their number in the docstring.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from headway.core.quota import SECOND

_WAITING = """
import json, sys, threading
from headway import Limit, Limiter
path, threads, go = sys.argv[1], int(sys.argv[2]), sys.stdin.readline
limits = [Limit("short", "4 per 500 ms", algorithm="sliding-log"), Limit("long", "12 per 2 s", algorithm="sliding-log")]
limiter = Limiter(*limits, store=f"sqlite:///{path}")  # made in this thread, used in others
grants, problems = [], []

def work():
    try:
        for _ in range(16 // threads):
            decision = limiter.wait(deadline=60)
            grants.append(decision.verdict.now)
            if decision.degraded or not decision.allowed:
                problems.append(decision.degraded or "refused")
    except Exception as error:
        problems.append(repr(error))

print("ready", flush=True)
go()
workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(json.dumps([grants, problems]))
"""

_ASKED = """
import sys
from headway import Limit, Limiter
limiter = Limiter(Limit("two", "2 per 365 days"), store=sys.argv[1])
for _ in sys.stdin:
    decision = limiter.hit()
    print(int(decision.allowed), decision.remaining, flush=True)
"""


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(process: subprocess.Popen[str]) -> str:
    """Give a child its turn; the line it answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


def most_within(grants: Sequence[int], period_ns: int) -> int:
    """The most grants that any half-open window of that length holds; such a window may begin at a grant."""
    return max(sum(first <= grant < first + period_ns for grant in grants) for first in grants)


@pytest.mark.parametrize("threads", [1, 8])
def test_two_scripts_on_one_file_are_not_locked_out_and_not_granted_one_too_many(threads: int, tmp_path: Path) -> None:
    """FS-09 (vutran1710/PyrateLimiter#60): two processes that wait for one file's limits: no error, no window of either length holds more, both go on."""
    scripts = [child(_WAITING, str(tmp_path / "limits.db"), str(threads)) for _ in range(2)]
    for script in scripts:
        assert script.stdout is not None
        assert script.stdout.readline() == "ready\n"
    answers = [json.loads(script.communicate("\n", timeout=120)[0]) for script in scripts]
    assert [problems for _, problems in answers] == [[], []]
    assert [len(grants) for grants, _ in answers] == [16, 16]
    grants = sorted(grant for grants, _ in answers for grant in grants)
    assert most_within(grants, SECOND // 2) <= 4
    assert most_within(grants, 2 * SECOND) <= 12


@pytest.mark.parametrize(
    ("store", "told"),
    [
        ("sqlite", ["1 1", "1 0", *["0 0"] * 6]),
        ("memory", [*["1 1"] * 4, *["1 0"] * 4]),
    ],
)
def test_four_workers_on_a_shared_store_do_not_get_the_limit_four_times(
    store: str, told: list[str], tmp_path: Path
) -> None:
    """FS-31 (encode/django-rest-framework#6730): 2 of 8 pass on a shared store; memory is each worker's own, so all 8 do."""
    url = f"sqlite:///{tmp_path / 'limits.db'}" if store == "sqlite" else "memory://"
    workers = [child(_ASKED, url) for _ in range(4)]
    try:
        assert [say(workers[turn % 4]).strip() for turn in range(8)] == told
    finally:
        for worker in workers:
            worker.communicate(timeout=30)


def test_a_window_of_the_check_above_would_notice_one_too_many() -> None:
    """The measure of the merged grants: a window that ends as it begins does not count twice, one inside does."""
    assert most_within([0, 1, 10], 10) == 2
    assert most_within([0, 1, 9], 10) == 3
