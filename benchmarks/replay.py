"""Replay: log lines per second and peak memory, as a log grows, beside reading the lines and beside parsing them alone.

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

from headway.analysis.access_log import line_pattern, whole_lines
from headway.analysis.logs.read import read_logs
from headway.analysis.replay import replay_log
from headway.analysis.replay.fields import mapped
from headway.analysis.replay.policy import Asked, fields_of, replay_policy
from headway.core.limit import Algorithm, Limit
from headway.policy.policy import Policy

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


def bare_parse(path: Path) -> int:
    """Find address and time in every line, and do nothing with them: what any replay has to do at least."""
    find = line_pattern(("address", "stamp")).findall
    with path.open("rb") as log:
        return sum(len(find(block)) for block in whole_lines(log.read))


def reading(path: Path) -> int:
    """Cut the log into lines."""
    with path.open("rb") as log:
        return sum(len(block.splitlines()) for block in whole_lines(log.read))


def one_limit(path: Path, what: str) -> tuple[int, str]:
    """Replay through one limit: ``headway replay LOG --limit "5 per 60s"``."""
    algorithm, _, match = what.partition(" ")
    with path.open("rb") as log:
        replay = replay_log(log, Limit("replay", "5 per 60s", by="address", algorithm=algorithm), match=match or None)
    return replay.lines, f"{replay.denied:>10,} denied {replay.keys:>8,} keys"


def whole_policy(path: Path) -> tuple[int, str]:
    """Replay through a policy, which counts by limit, key, status and time: ``headway replay LOG --policy FILE``."""
    limits = (Limit("minute", "5 per 60s", by="ip"), Limit("hour", "100 per hour", by="ip"))
    policy = Policy("benchmark", limits, "benchmark")
    asked = Asked(policy, "", mapped([policy], {}, {}))
    replay = replay_policy(read_logs([str(path)], fields_of(asked)), asked)
    return replay.lines, f"{replay.today.refused:>10,} denied {replay.today.limits[0].keys:>8,} keys"


def measure(path: Path, what: str) -> None:
    """Run one measurement in this process and print it: lines, seconds of processor time, MiB, what else there is to say."""
    begun = time.process_time()
    lines, extra = 0, ""
    match what:
        case "reading":
            lines = reading(path)
        case "bare parse":
            lines = bare_parse(path)
        case "policy":
            lines, extra = whole_policy(path)
        case _:
            lines, extra = one_limit(path, what)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(lines, seconds, peak, extra, sep="\t")


def main(arguments: list[str]) -> None:
    """Write a log and a tenth of it, and measure every algorithm on both, each beside a bare parse of the same lines."""
    lines = int(arguments[0]) if arguments else 2_000_000
    runs = [
        "reading",
        "bare parse",
        *(name for name in Algorithm if name not in (Algorithm.CALENDAR_WINDOW, Algorithm.CONCURRENCY)),
        "gcra GET /page/1*",
        "policy",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for size in (lines // 10, lines):
            path = Path(folder) / f"{size}.log"
            write_log(path, size)
            bare = 0.0
            for what in runs:
                words = [sys.executable, __file__, "--measure", str(path), what]
                said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
                found, seconds, peak, extra = said.rstrip("\n").split("\t")
                pace = int(found) / float(seconds)
                bare = pace if what == "bare parse" else bare
                ratio = f"{bare / pace:>6.2f} x bare parse" if bare else f"{'':>19}"
                print(
                    f"{what:<20}{int(found):>11,} lines {pace:>10,.0f} lines/s a core {ratio} "
                    f"{float(peak):>6.1f} MiB peak {extra}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1:])
