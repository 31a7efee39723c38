"""Ten million distinct keys against one memory store: bounded memory, flat latency, no active refusal forgotten.

``python -m benchmarks memory_attack [--keys 10000000] [--max-keys 1000000] [--json FILE]``

An attacker chooses keys freely, so every hit brings a new one. Before the attack some victims spend their quota. Two
attacks: keys that stay active for an hour, so the store fills up and must turn new ones away; and keys that recover
within a second, so that the store has to forget as fast as they come.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from benchmarks.measure import keep, quiet
from headway import Limit, Limiter, MemoryStore

ATTACKS = {"keys that stay active": "5 per hour", "keys that recover": "5 per 5 s"}
VICTIMS = 1_000


@dataclass(frozen=True, slots=True)
class Stage:
    """One tenth of an attack.

    Attributes:
        keys: distinct keys so far.
        held: keys in the store.
        rss: resident memory in bytes.
        p50: ns a hit, median.
        p99: ns a hit.
        refused: hits of this stage that the full store turned away.
    """

    keys: int
    held: int
    rss: int
    p50: int
    p99: int
    refused: int


def attack(quota: str, keys: int, max_keys: int, stages: int = 10) -> Iterator[tuple[Stage, int]]:
    """Run an attack; after each stage its figures, and how many of the spent victims were admitted (none may be)."""
    store = MemoryStore(max_keys=max_keys)
    victims = Limiter(Limit("victim", "1 per 7 days", by="victim"), store=store)
    flood = Limiter(Limit("flood", quota, by="id"), store=store)
    for number in range(VICTIMS):
        assert victims.hit(victim=f"v{number}").allowed
    now = time.perf_counter_ns
    spans = array("Q", bytes(8 * (keys // stages)))  # made once: what is measured is the store's memory
    for stage in range(stages):
        refused = 0
        for number in range(len(spans)):
            key = f"{stage}:{number:016x}"
            begun = now()
            decision = flood.hit(id=key)
            spans[number] = now() - begun
            refused += not decision.allowed
        rss = resident()
        p50, p99 = percentiles(spans)
        yield (
            Stage((stage + 1) * len(spans), len(store), rss, p50, p99, refused),
            sum(victims.hit(victim=f"v{number}").allowed for number in range(VICTIMS)),
        )


def percentiles(spans: Sequence[int]) -> tuple[int, int]:
    """The median and the 99th percentile."""
    ordered = sorted(spans)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


def resident() -> int:
    """Resident memory now, in bytes; where the system does not say, the most there has been."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123  # a system's file, not a path of ours
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def main(arguments: Sequence[str], say: Callable[[str], object] = print) -> int:
    """Run both attacks and print a line a stage; 1 when a victim was admitted or the store grew beyond its bound."""
    parser = argparse.ArgumentParser(prog="memory_attack", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--max-keys", type=int, default=1_000_000)
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    with quiet():
        return _attacked(options, say)


def _attacked(options: argparse.Namespace, say: Callable[[str], object]) -> int:
    tables, failed = [], False
    for title, quota in ATTACKS.items():
        say(
            f"\n{title} ({quota}), at most {options.max_keys:,} held, {VICTIMS:,} victims; {resident() / 2**20:,.0f} MiB before"
        )
        rows = []
        for row, forgotten in attack(quota, options.keys, options.max_keys):
            say(
                f"{row.keys:12,} keys {row.held:12,} held {row.rss / 2**20:8,.0f} MiB {row.p50:8,} ns p50 {row.p99:8,} ns p99"
                f" {row.refused:12,} turned away {forgotten:6} victims admitted"
            )
            failed |= forgotten > 0 or row.held > options.max_keys
            rows.append(asdict(row))
        tables.append({"title": title, "quota": quota, "rows": rows})
    keep(options.json, tables)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
