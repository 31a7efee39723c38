"""Measuring: contenders take turns in shuffled rounds, so that a machine whose speed drifts is fair to all; medians."""

from __future__ import annotations

import gc
import json
import logging
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

Contender = Callable[[int], object]
"""Does the measured thing that many times."""


def rounds(
    contenders: Mapping[str, Contender], calls: int, repeats: int, clock: Callable[[], int] = time.perf_counter_ns
) -> dict[str, list[float]]:
    """Nanoseconds per call of each contender, one figure a round.

    Args:
        contenders: by name.
        calls: of each, in each round.
        repeats: how many rounds.
        clock: ``time.process_time_ns`` for what never waits: then other work on the machine counts for nobody.
    """
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run(max(1, calls // 10))
    order = list(contenders)
    for _ in range(repeats):
        random.shuffle(order)
        for name in order:
            gc.collect()
            gc.disable()
            start = clock()
            contenders[name](calls)
            figures[name].append((clock() - start) / calls)
            gc.enable()
    return figures


def ratio(figures: Mapping[str, Sequence[float]], name: str, base: str) -> float:
    """The median over the rounds of one contender's figure by another's of the same round."""
    return statistics.median(a / b for a, b in zip(figures[name], figures[base], strict=True))


def table(title: str, figures: Mapping[str, Sequence[float]], base: str, unit: str = "ns") -> dict[str, object]:
    """Print medians, spreads and ratios to ``base``; the same as data."""
    print(f"\n{title}\n{'':34}{'median ' + unit:>12}{'min':>10}{'max':>10}{'× ' + base:>22}")
    rows: dict[str, object] = {}
    for name, values in sorted(figures.items(), key=lambda item: statistics.median(item[1])):
        times = ratio(figures, name, base)
        median = statistics.median(values)
        print(f"{name:34}{median:12,.0f}{min(values):10,.0f}{max(values):10,.0f}{times:22.2f}")
        rows[name] = {"median": median, "min": min(values), "max": max(values), "ratio": times}
    return {"title": title, "unit": unit, "base": base, "rows": rows}


def keep(path: str | None, tables: Sequence[object]) -> None:
    """Write the figures as JSON, if a file was named."""
    if path:
        Path(path).write_text(json.dumps(tables, indent=2) + "\n")


@contextmanager
def quiet() -> Iterator[None]:
    """No warning of ours is printed between the figures; afterwards the loggers are as they were."""
    logger = logging.getLogger("headway")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
