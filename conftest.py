"""How the whole test run treats what a machine lacks: a loud skip for people, a failure where ``CI=true``.

A test that lacks a server skips with a reason that begins with "needs", such as
``pytest.skip("needs a Redis server: start one, or set HEADWAY_REDIS_URL")``. Other skips stay skips: what cannot be
tested as root is not a lack.
"""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest

pytest_plugins = ["pytester"]

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_configure(config: pytest.Config) -> None:
    """Reasons of skipped tests are listed at the end, also with ``-q``. Under ``CI=true`` missing servers are installed."""
    script = Path(__file__).with_name("scripts") / "install-servers"
    if os.environ.get("CI") == "true" and not hasattr(config, "workerinput") and script.exists():
        subprocess.run([script], check=False)  # noqa: S603  # our own
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: a quarter of the run waits for servers, browsers and other processes."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return count + 1


def pytest_collection_finish() -> None:
    """Ten thousand tests stay to the end: no collection of garbage need look at them again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under ``CI=true`` a test that lacks something fails."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module."""
    return _judged((yield))


def _judged(report: Report) -> Report:
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    reason = reason.removeprefix("Skipped: ")
    if reason.startswith("needs ") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{reason} (CI=true: what is missing is a failure)"
    return report
