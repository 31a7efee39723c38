"""Replay: log lines per second and peak memory, as a log grows; the floor is reading its lines and matching nothing.

Run: ``uv run python -m benchmarks replay [LINES]`` (default 2,000,000). Each measurement is a process of its own, so that
its peak memory is its own. Prints figures and never fails.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headway.analysis.access_log import whole_lines
from headway.analysis.replay import replay_log
from headway.core.limit import Algorithm, Limit

KEYS = 20_000
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def write_log(path: Path, lines: int) -> None:
    """About 12 requests a second from ``KEYS`` addresses, a few of which send most of them."""
    chance = random.Random(1)
    at = 1_445_742_685.0
    stamp, shown = -1, ""
    with path.open("w") as log:
        for _ in range(lines):
            at += chance.expovariate(12)
            if int(at) != stamp:
                stamp = int(at)
                shown = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(stamp))
            who = int(KEYS * chance.random() ** 4)
            path_number = int(500 * chance.random() ** 2)
            log.write(
                f'198.18.{who >> 8}.{who & 255} - - [{shown}] "GET /page/{path_number}?from=home HTTP/1.1" 200 '
                f'{chance.randrange(200, 90_000)} "https://example.org/" "{AGENT}"\n'
            )


def measure(path: Path, what: str) -> None:
    """Run one measurement in this process and print it."""
    begun = time.process_time()
    with path.open("rb") as log:
        if what == "floor":
            lines, extra = sum(len(block.splitlines()) for block in whole_lines(log.read)), ""
        else:
            algorithm, _, match = what.partition(" ")
            replay = replay_log(
                log, Limit("replay", "5 per 60s", by="address", algorithm=algorithm), match=match or None
            )
            lines, extra = replay.lines, f"{replay.denied:>10,} denied {replay.keys:>8,} keys"
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what:<28}{lines:>10,} lines {lines / seconds:>10,.0f} lines/s a core {peak:>6.1f} MiB peak {extra}",
        flush=True,
    )


def main(arguments: list[str]) -> None:
    """Write a log and a tenth of it, and measure every algorithm on both."""
    lines = int(arguments[0]) if arguments else 2_000_000
    runs = [
        "floor",
        *(name for name in Algorithm if name not in (Algorithm.CALENDAR_WINDOW, Algorithm.CONCURRENCY)),
        "gcra GET /page/1*",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for size in (lines // 10, lines):
            path = Path(folder) / f"{size}.log"
            write_log(path, size)
            for what in runs:
                subprocess.run([sys.executable, __file__, "--measure", str(path), what], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1:])
