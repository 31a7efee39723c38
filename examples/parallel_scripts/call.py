"""Call a service that refuses parallel callers and a second call within a moment: scripts share one budget in a file.

    python call.py --budget budget.db --calls 10 https://service.example.com/report

Start as many as you like: one call is under way at a time, and 50 ms lie between two, whoever makes them; first come first
served within a script. A script that is killed in the middle of a call holds the others up for half a minute at most.
"""

from __future__ import annotations

import argparse
import os
import sys
import urllib.request
from pathlib import Path

from headway.client.pace import Pace
from headway.client.retry import Retry
from headway.client.wrap import patient
from headway.errors import DeadlineTooSoon, RateLimitedError

QUOTAS = ("1 at once for 30 s", "1 per 50ms")


def main(arguments: list[str] | None = None) -> int:
    """Make the calls, one line each; 75 when the deadline cannot be met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--budget", type=Path, default=Path("budget.db"), help="the file that all scripts share")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=60, help="seconds for one call, its waits included")
    args = parser.parse_args(arguments)

    with Pace(*QUOTAS, store=f"sqlite:///{args.budget.absolute()}", name="report") as pace:

        @patient(pace=pace, retry=Retry(deadline=args.deadline), repeatable=True)
        def call() -> bytes:
            with urllib.request.urlopen(args.url, timeout=10) as answer:  # noqa: S310  # the caller's own address
                body: bytes = answer.read()
                return body

        try:
            for number in range(args.calls):
                print(os.getpid(), number + 1, call().decode("utf-8", "replace"), flush=True)
        except (DeadlineTooSoon, RateLimitedError) as error:
            print(error, file=sys.stderr)
            return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
