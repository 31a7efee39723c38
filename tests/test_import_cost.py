"""What ``import headway`` costs a program: few modules, little time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SLOW = [
    "asyncio", "concurrent.futures", "sqlite3", "logging", "datetime", "zoneinfo", "urllib.parse", "uuid",
    "hmac", "hashlib", "random", "json", "tomllib", "decimal", "fractions", "socket", "ssl", "http", "email", "pathlib",
    "importlib.metadata", "multiprocessing", "gettext", "html",
]  # fmt: skip
"""Modules that a decision in memory does without, and that take their time."""


def fresh(program: str) -> str:
    return subprocess.run([sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True).stdout


def test_import_loads_nothing_that_deciding_does_without() -> None:
    """Neither the import nor a decision on the memory store loads a slow module of the standard library."""
    program = """
import sys
before = set(sys.modules)
import headway
codes = headway.Limiter(headway.Limit("resend", "1 per 60s", by="phone"), headway.Limit("all", "100/day burst 20"))
assert codes.hit(phone="1").allowed and not codes.hit(phone="1").allowed
refused = codes.peek(phone="1")
assert refused.retry_after > 59 and refused.limit == "resend" and refused.outcomes
print(*sorted(set(sys.modules) - before))
"""
    loaded = set(fresh(program).split())
    assert loaded & set(SLOW) == set()
    assert {name for name in loaded if name.partition(".")[0] not in {"headway", *sys.stdlib_module_names}} == set()


def best_of(runs: int, program: str) -> float:
    """Seconds of processor time a fresh interpreter takes for it, at best: other work on the machine does not count."""
    taken = []
    for _ in range(runs):
        child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-I", "-c", program])
        _, status, used = os.wait4(child, 0)
        assert status == 0
        taken.append(used.ru_utime + used.ru_stime)
    return min(taken)


needs_wait4 = pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs wait4 to measure a child's processor time")


@needs_wait4
@pytest.mark.parametrize(
    ("program", "at_most", "times"), [("import headway", 0.02, 1.5), ("from headway import Limit, Limiter", 0.1, 7)]
)
def test_import_takes_little_time(program: str, at_most: float, times: float) -> None:
    """The best fresh interpreter that imports, less the best that imports nothing; a busy machine gets more tries.

    A slow machine gets so many times what it takes to start an interpreter.
    """
    bare = best_of(10, "pass")
    assert any(best_of(10, program) - bare < max(at_most, times * bare) for _ in range(8))


def test_every_public_name_is_loaded_when_it_is_asked_for() -> None:
    """A fresh interpreter finds each name and each part, says no to others, and lists what there is."""
    fresh("""
import headway
assert set(headway.__all__) <= set(dir(headway)) and not hasattr(headway, "Nothing")
for name in headway.__all__:
    assert getattr(headway, name) is not None, name
assert headway.errors.LimitError is headway.LimitError and headway.stores.url.open_store is headway.open_store
from headway import *
Limiter, AsyncLimiter, When
""")
