"""One of several processes that call the strict services as fast as their shared pace lets them.

``python -m tests.client.loop_worker URL STORE THREADS SECONDS SERVICE…``; begins when a line arrives on standard input.
"""

from __future__ import annotations

import sys
import threading
import time
from functools import partial

import urllib3
from tests.client.strict import COUNT, PERIOD, TOKENS

from headway.client.pace import Pace
from headway.client.transport_urllib3 import PatientManager

_PLAIN = f"{COUNT} per {PERIOD:g} s"


def _cost(cost: dict[str, int] | None, *_: object) -> dict[str, object]:
    """What a call costs, for the transport."""
    return {"cost": cost}


def main() -> None:
    """Run the threads until the time is over."""
    url, store, threads, seconds, *services = sys.argv[1:]
    calls = {}
    for service in services:
        tokens = {"requests": _PLAIN, "tokens": f"{COUNT * TOKENS} per {PERIOD:g} s"}
        pace = Pace(tokens if service == "openai" else _PLAIN, store=store, name=service)
        cost = {"tokens": TOKENS} if service == "openai" else None
        attributes = partial(_cost, cost)
        manager = urllib3.PoolManager(maxsize=int(threads))
        calls[service] = PatientManager(manager, pace=pace, attributes=attributes)
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + float(seconds)

    def work(service: str) -> None:
        while time.monotonic() < end:
            try:
                calls[service].request("GET", f"{url}/{service}")
            except Exception as error:  # any error is a failure of the loop, told to the test
                print(f"{service}: {error!r}", flush=True)
                return

    running = [threading.Thread(target=work, args=(name,)) for name in services for _ in range(int(threads))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


if __name__ == "__main__":
    main()
