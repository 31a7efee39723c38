"""The real service as a child process, on a free loopback port and a state folder of its own."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

__all__ = ["DEADLINE_S", "Service", "command", "environment", "run", "serving"]

DEADLINE_S = 60
"""No wait for a child process is longer."""


@dataclass
class Service:
    """A service that listens."""

    url: str
    process: subprocess.Popen[str]
    greeting: str
    client: httpx.Client = field(repr=False)

    def check(self, policy: str = "codes", cost: object = 1, /, **attributes: object) -> httpx.Response:
        """One request to /v1/check."""
        return self.client.post("/v1/check", json={"policy": policy, "attributes": attributes, "cost": cost})

    def peek(self, policy: str = "codes", cost: object = 1, /, **attributes: object) -> httpx.Response:
        """One request to /v1/peek."""
        return self.client.post("/v1/peek", json={"policy": policy, "attributes": attributes, "cost": cost})

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and wait; the exit code and what was said on standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, said


def command(*words: str) -> list[str]:
    """``headway`` with these words, run by this interpreter."""
    return [sys.executable, "-m", "headway", *words]


def environment(folder: Path, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment of a user whose home is ``folder``."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("HEADWAY_SECRET_KEY",)}
    return {**inherited, "XDG_STATE_HOME": str(folder / "state"), "PYTHONWARNINGS": "error", **extra}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``headway`` with these words, to its end."""
    return subprocess.run(
        command(*words), capture_output=True, text=True, env=environment(folder), cwd=folder, timeout=DEADLINE_S
    )


@contextmanager
def serving(
    folder: Path, policies: str | None = None, *options: str, extra: Mapping[str, str] = {}
) -> Iterator[Service]:
    """Start the service and stop it at the end.

    Args:
        folder: for the policy file and the state.
        policies: the text of ``limits.toml``; None serves the built-in policies.
        options: further words of the command line.
        extra: further variables of the environment.
    """
    words = ["serve", "--port", "0", *options]
    if policies is not None:
        path = folder / "limits.toml"
        path.write_text(policies, encoding="utf-8")
        words.insert(1, str(path))
    process = subprocess.Popen(
        command(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder, extra),
        cwd=folder,
    )
    try:
        greeting = _greeting(process)
        found = re.search(r"http://\S+:\d+", greeting)
        assert found, greeting
        with httpx.Client(base_url=found[0], timeout=DEADLINE_S, trust_env=False) as client:
            yield Service(found[0], process, greeting, client)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _greeting(process: subprocess.Popen[str]) -> str:
    """Everything up to the last of the three lines to paste."""
    assert process.stdout is not None
    said = ""
    give_up = time.monotonic() + DEADLINE_S
    while said.count("\ncurl ") < 3 or not said.endswith("\n"):
        readable, _, _ = select.select([process.stdout], [], [], max(0, give_up - time.monotonic()))
        more = os.read(process.stdout.fileno(), 65536).decode() if readable else ""
        if not more:
            process.kill()
            _, error = process.communicate()
            raise AssertionError(f"the service did not start; it said {said!r} and {error!r}")
        said += more
    return said
