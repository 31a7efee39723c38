"""Histories of several processes on one store, and whether some order of the sequential core explains all that was answered.

After J. Wing and C. Gong, "Testing and Verifying Concurrent Objects" (1993): calls that did not overlap keep their order,
those that did may have come in any. The core decides each bill at the instant that the store told. Nothing else may
use the keys.

    assert_linearizable(record(partial(RedisStore, url, refusal_cache=0), seed=1))
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Lease, Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted
from headway.core.rule import State
from headway.stores.base import Answer, Store, settled_bill

LIMITS = (
    Limit("quick", "20/s burst 5", by="id"),
    Limit("slow", "60 per 365 days", by="id"),
    Limit("thirds", "3/s burst 6", by="id"),
    Limit("window", "40 per 365 days", by="id", algorithm="anchored-window"),
    Limit("sliding", "40 per 365 days", by="id", algorithm="sliding-window"),
    Limit("log", "40 per 365 days", by="id", algorithm="sliding-log"),
    Limit("held", "5 at once for 1h", by="id"),
)
_GIVEN_BACK = ("window", "log", "held")
"""Limits on which the instant of a refund, which no store tells, makes no difference."""

Key = tuple[str, object]
States = Mapping[Key, State]


@dataclass(frozen=True, slots=True)
class Call:
    """What one process asked, and what it was told.

    Attributes:
        process: its number; a process makes one call at a time.
        begin: just before the call, on the machine's monotonic clock (ns).
        end: just after it.
        charges: of a bill or a reset; empty for a change.
        commit: False for a peek.
        answer: to a bill, else None.
        changes: of a change.
        in_time: what was answered to them.
    """

    process: int
    begin: int
    end: int
    charges: tuple[Charge, ...] = ()
    commit: bool = True
    answer: Answer | None = None
    changes: tuple[Change, ...] = ()
    in_time: tuple[bool, ...] = ()

    def after(self, states: States, about: int) -> States | None:
        """The states after this call, if the core would have answered the same; ``about``: an instant it was made at."""
        if self.answer is not None:
            known = [states.get(_key(charge)) for charge in self.charges]
            settled, costs = settled_bill(self.charges, known, self.answer.now)
            if Answer(settled.allowed, self.answer.now, settled.outcomes, costs) != self.answer:
                return None
            writes = {_key(self.charges[index]): state for index, state in settled.writes if self.commit}
            return {**states, **writes} if writes else states
        if not self.changes:
            gone = {_key(charge) for charge in self.charges}
            return {key: state for key, state in states.items() if key not in gone}
        changed, in_time = dict(states), []
        for change in self.changes:
            state, timely = change.applied(changed.get(_key(change.charge)), about)
            changed[_key(change.charge)] = state
            in_time.append(timely)
        return changed if tuple(in_time) == self.in_time else None


def _key(charge: Charge) -> Key:
    return charge.limit.name, charge.key


def record(
    open_store: Callable[[], Store],
    *,
    seed: int,
    limits: Sequence[Limit] = LIMITS,
    processes: int = 8,
    calls: int = 30,
) -> list[Call]:
    """What processes that start together are told to random calls on the same few keys.

    Args:
        open_store: makes a process's own store; run in that process.
        seed: of the calls.
        limits: those of ``LIMITS`` that the store is asked about.
        processes: how many.
        calls: of each.
    """
    context = multiprocessing.get_context("fork")  # eight new interpreters would cost more than what is looked at
    barrier, told = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_work, args=(open_store, tuple(limits), seed, number, calls, barrier, told))
        for number in range(processes)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads of the test run, which hold nothing of ours
        for worker in workers:
            worker.start()
    heard = [told.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(60)
    problems = [one for one in heard if isinstance(one, BaseException)]
    if problems:
        raise problems[0]
    return [call for calls_of_one in heard for call in calls_of_one]


def _work(
    open_store: Callable[[], Store],
    limits: Sequence[Limit],
    seed: int,
    number: int,
    calls: int,
    barrier: Any,
    told: Any,
) -> None:
    try:
        store = open_store()
        store.advance([Charge("other", limits[0], "warm", 1)])
        barrier.wait(60)
        told.put(_calls(store, limits, Random(f"{seed} {number}"), number, calls))
        store.close()
    except BaseException as error:
        barrier.abort()
        told.put(error)


def _calls(store: Store, limits: Sequence[Limit], random: Random, process: int, calls: int) -> list[Call]:
    made: list[Change] = []
    told: list[Call] = []
    while len(told) < calls:
        chance = random.random()
        if chance < 0.15 and made:
            changes = (made.pop(random.randrange(len(made))),)
            begin = time.monotonic_ns()
            in_time = store.change(changes)
            told.append(Call(process, begin, time.monotonic_ns(), changes=changes, in_time=in_time))
            continue
        charges = _bill(limits, random)
        if chance > 0.98:
            begin = time.monotonic_ns()
            store.reset(charges)
            told.append(Call(process, begin, time.monotonic_ns(), charges))
            continue
        commit = random.random() < 0.85
        begin = time.monotonic_ns()
        answer = store.advance(charges, commit=commit)
        told.append(Call(process, begin, time.monotonic_ns(), charges, commit, answer))
        if answer.allowed and commit:
            made += [
                Change(charge, Receipt(answer.now, cost, charge.lease.token if charge.lease else 0, outcome), cost)
                for charge, cost, outcome in zip(charges, answer.costs, answer.outcomes, strict=True)
                if cost and isinstance(outcome, Admitted) and charge.limit.name in _GIVEN_BACK
            ]
    return told


def _bill(limits: Sequence[Limit], random: Random) -> tuple[Charge, ...]:
    chosen = random.sample(list(limits), random.choice([1, 1, 2, 3]))
    flexible = random.random() < 0.15
    return tuple(
        Charge(
            "n",
            limit,
            random.choice("xy"),
            random.choice([0, 1, 1, 1, 1, 2, 3, 99]),
            Lease(random.getrandbits(63) or 1, 3600 * 10**9) if limit.name == "held" else None,
            flexible,
        )
        for limit in chosen
    )


def overlaps(history: Sequence[Call]) -> int:
    """How many calls began while another one was under way."""
    ordered = sorted(history, key=lambda call: call.begin)
    latest, count = 0, 0
    for call in ordered:
        count += call.begin < latest
        latest = max(latest, call.end)
    return count


def assert_linearizable(history: Sequence[Call]) -> list[Call]:
    """The order that explains the history; fails, naming where it ends, if there is none."""
    queues = [
        sorted((call for call in history if call.process == process), key=lambda call: call.begin)
        for process in sorted({call.process for call in history})
    ]
    ahead = [call.answer.now - (call.begin + call.end) // 2 for call in history if call.answer]
    offset = round(statistics.median(ahead)) if ahead else 0
    seen: set[object] = set()
    order: list[Call] = []
    furthest: list[Call] = []
    steps = [_candidates(queues, [0] * len(queues), {}, offset)]
    places: list[list[int]] = [[0] * len(queues)]
    while steps:
        if len(order) == len(history):
            return order
        found = next(steps[-1], None)
        if found is None:
            steps.pop()
            places.pop()
            if order:
                order.pop()
            continue
        index, call, states = found
        place = list(places[-1])
        place[index] += 1
        mark = (tuple(place), frozenset(states.items()))
        if mark in seen:
            continue
        seen.add(mark)
        order.append(call)
        if len(order) > len(furthest):
            furthest = list(order)
        places.append(place)
        steps.append(_candidates(queues, place, states, offset))
    left = [call for call in history if call not in furthest]
    raise AssertionError(
        f"no order of the sequential core explains these {len(history)} calls; {len(furthest)} of them can be explained, "
        f"then none of {sorted(left, key=lambda call: call.begin)[:8]}"
    )


def _candidates(
    queues: Sequence[Sequence[Call]], place: Sequence[int], states: States, offset: int
) -> Iterator[tuple[int, Call, States]]:
    """The calls that may come next, likely ones first: none of the others ended before they began."""
    heads = [(index, queue[at]) for index, (queue, at) in enumerate(zip(queues, place, strict=True)) if at < len(queue)]
    if not heads:
        return
    soonest = min(call.end for _, call in heads)

    def about(call: Call) -> int:
        return call.answer.now if call.answer else (call.begin + call.end) // 2 + offset

    for index, call in sorted(heads, key=lambda head: about(head[1])):
        if call.begin <= soonest:
            after = call.after(states, about(call))
            if after is not None:
                yield index, call, after
