"""The closed loop: four processes share one budget in a file and call strict services, in real time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.client.strict import COUNT, KINDS, PERIOD, Server, Service

PROCESSES, THREADS, PERIODS = 4, 2, 3
USED = 0.99
ROUNDS = 3
"""So often at most: a machine that has other things to do may keep the callers from calling, never make them refused."""
ROOT = Path(__file__).parents[2]


def usage(service: Service) -> float:
    """The share of the quota that was used in the first whole periods."""
    first = service.admitted[0]
    return sum(at < first + PERIODS * PERIOD for at in service.admitted) / (PERIODS * COUNT)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Service]]:
    """Every service after four processes called it for three periods, again if the machine was too busy to call."""
    done = []
    for _ in range(ROUNDS):
        done.append(called(tmp_path_factory.mktemp("loop")))
        if all(usage(service) >= USED for service in done[-1].values()):
            break
    return done


def called(folder: Path) -> dict[str, Service]:
    """One round."""
    store = f"sqlite:///{folder / 'pace.db'}"
    with Server() as server:
        words = [sys.executable, "-m", "tests.client.loop_worker", server.url, store, str(THREADS)]
        words += [str(PERIODS * PERIOD), *KINDS]
        workers = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            for _ in range(PROCESSES)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        said = ""
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            said += worker.communicate(timeout=60)[0]
            assert worker.returncode == 0
        assert said == ""
        return server.services


@pytest.mark.xdist_group("closed-loop")
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_refused_and_the_quota_is_used(name: str, rounds: list[dict[str, Service]]) -> None:
    """No refusal that could be avoided, and at least 99 % of the quota used, whatever the service's algorithm."""
    assert [services[name].refused for services in rounds] == [0] * len(rounds)
    assert max(usage(services[name]) for services in rounds) >= USED
