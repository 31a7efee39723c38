"""What the Redis stores do, once, as flows: decide bills, change charges, reset, look; for one server and for a cluster.

In a cluster the limits of one bill may live in different slots. Each slot's share is decided at the same time as the
others; if one refuses, what the others charged is given back in one more round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headway.core.bill import grant, settle
from headway.core.change import Change
from headway.core.charge import Charge
from headway.core.lease import Receipt
from headway.core.limit import Limit
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import State
from headway.errors import StoreError, StoreUnavailable
from headway.stores.base import Answer, settled_bill
from headway.stores.redis.calls import ask, run, together
from headway.stores.redis.codec import form_of
from headway.stores.redis.keys import limit_pattern, slot_of, stored_key
from headway.stores.redis.resp import Failed, Reply, command
from headway.stores.redis.scripts import script
from headway.stores.redis.settings import Node
from headway.stores.redis.topology import Flow, Send, Topology

__all__ = ["MOST_BILLS", "Bill", "Decided", "change", "clear", "clears_after", "decide", "requota", "reset"]

MOST_BILLS: Final = 128
"""Bills in one script call; more go in several calls of the same round trip."""

_MOST_CHARGES: Final = 1024
_SCAN: Final = 500
_TRIES: Final = 20

Now = Callable[[], int]
"""About the store's clock, ns since 1970: good enough to choose calendar windows by."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Charges that are decided together.

    Attributes:
        charges: see ``Store.advance``.
        commit: see ``Store.advance``.
    """

    charges: Sequence[Charge]
    commit: bool = True


@dataclass(frozen=True, slots=True)
class Decided:
    """A bill's answer, and what it was made from.

    Attributes:
        answer: for the caller.
        keys: the stored keys, one per charge.
        states: what they held before, as the core keeps it.
        writes: whether something was written.
    """

    answer: Answer
    keys: Sequence[bytes]
    states: Sequence[State | None]
    writes: bool


@dataclass(slots=True)
class _Part:
    """The charges of one bill that live in one slot, and what came of them."""

    bill: int
    charges: Sequence[Charge]
    keys: Sequence[bytes]
    commit: bool
    allowed: bool = False
    now: int = 0
    states: Sequence[State | None] = ()
    error: StoreError | None = None
    undecided: bool = True


def decide(topology: Topology, bills: Sequence[Bill], now: Now, clock: bool) -> Flow[list[Decided | StoreError]]:
    """Decide bills, each all or nothing and in their order; for each its answer, or why there is none.

    Args:
        topology: where the keys are.
        bills: any number.
        now: about the store's clock.
        clock: a test's: decide by ``now`` instead of the server's time.
    """
    parts: list[_Part] = []
    for index, bill in enumerate(bills):
        if topology.clustered:
            fixed = yield from _granted(topology, bill, now, clock)
            parts += _by_slot(index, fixed.charges, fixed.commit)
        else:
            parts.append(_Part(index, bill.charges, [stored_key(charge) for charge in bill.charges], bill.commit))
    yield from _decide_parts(topology, parts, now, clock)
    of_bill: list[list[_Part]] = [[] for _ in bills]
    for part in parts:
        of_bill[part.bill].append(part)
    back: list[Change] = []
    results: list[Decided | StoreError] = []
    for bill, shares in zip(bills, of_bill, strict=True):
        if len(shares) == 1:
            results.append(_whole(shares[0]))
            continue
        error = next((share.error for share in shares if share.error is not None), None)
        allowed = error is None and all(share.allowed for share in shares)
        if bill.commit and not allowed:
            for share in shares:
                back += _given_back(share)
        results.append(error or _shared(bill, shares, allowed=allowed))
    if back:
        yield from change(topology, [back], now, clock)
    return results


def _by_slot(index: int, charges: Sequence[Charge], commit: bool) -> list[_Part]:
    slots: dict[int, tuple[list[Charge], list[bytes]]] = {}
    for charge in charges:
        key = stored_key(charge)
        mine = slots.setdefault(slot_of(key), ([], []))
        mine[0].append(charge)
        mine[1].append(key)
    return [_Part(index, *mine, commit) for mine in slots.values()]


def _decide_parts(topology: Topology, parts: Sequence[_Part], now: Now, clock: bool) -> Flow[None]:
    """Fill in what became of each part; a second time where a calendar's boundaries did not reach."""
    about = now
    for _ in range(2):
        groups = _groups(topology, [part for part in parts if part.undecided])
        if not groups:
            return
        calls = [run(topology, slot, script("advance"), *_packed(group, about(), now() if clock else None)) for slot, group in groups]
        replies = yield from together(calls) if len(calls) > 1 else _alone(calls[0])
        for (_, group), reply in zip(groups, replies, strict=True):
            _fill(group, reply)
        stood = max((part.now for part in parts if part.undecided), default=0)
        about = lambda: stood  # noqa: E731  # the server's own clock, where ours was far from it
    for part in parts:
        if part.undecided and part.error is None:
            part.error = StoreUnavailable("Redis store: its clock moves by more than a window at a time")


def _alone(call: Flow[Reply]) -> Flow[list[Reply | StoreError]]:
    try:
        return [(yield from call)]
    except StoreError as error:
        return [error]


def _groups(topology: Topology, parts: Sequence[_Part]) -> list[tuple[int | None, list[_Part]]]:
    """Parts that travel in one script call: of one slot in a cluster, and not too many."""
    groups: list[tuple[int | None, list[_Part]]] = []
    latest: dict[int | None, tuple[list[_Part], int]] = {}
    for part in parts:
        slot = slot_of(part.keys[0]) if topology.clustered and part.keys else 0 if topology.clustered else None
        group, charges = latest.get(slot, ([], MOST_BILLS * _MOST_CHARGES))
        if len(group) >= MOST_BILLS or charges + len(part.keys) > _MOST_CHARGES:
            group, charges = [], 0
            groups.append((slot, group))
        group.append(part)
        latest[slot] = group, charges + len(part.keys)
    return groups


def _packed(parts: Sequence[_Part], about: int, given: int | None) -> tuple[list[bytes], list[bytes]]:
    """The KEYS and ARGV of advance.lua."""
    keys: list[bytes] = []
    head = bytearray()
    args = [b""]
    for part in parts:
        keys += part.keys
        flexible = False
        for charge in part.charges:
            form = form_of(charge.limit)
            if charge.flexible:
                flexible = True
            elif charge.cost == 1 and charge.lease is None and form.ones is not None:
                args.append(form.ones)
                continue
            args.append(form.line(charge.cost, charge.lease, charge.flexible, about))
        head += (4 * len(part.keys) + 2 * flexible + part.commit).to_bytes(2, "little")
    args[0] = bytes(head)
    if given is not None:
        args.append(b"%d" % (given // 1000))
    return keys, args


def _fill(parts: Sequence[_Part], reply: Reply | StoreError) -> None:
    if isinstance(reply, StoreError) or not isinstance(reply, bytes):
        error = reply if isinstance(reply, StoreError) else StoreUnavailable(f"Redis store: answered {reply!r}")
        for part in parts:
            part.error, part.undecided = error, False
        return
    fields = reply.split(b" ")
    now = int(fields[0]) * 1000
    at = 1
    for part in parts:
        size = len(part.keys)
        part.now = now
        if fields[at] != b"?":
            part.undecided = False
            part.allowed = fields[at] == b"1"
            part.states = [
                None if text == b"-" else form_of(charge.limit).load(text, now)
                for charge, text in zip(part.charges, fields[at + 1 : at + 1 + size], strict=True)
            ]
        at += 1 + size


def _whole(part: _Part) -> Decided | StoreError:
    """The answer to a bill that lives in one place."""
    if part.error is not None:
        return part.error
    settled, costs = settled_bill(part.charges, part.states, part.now)
    answer = Answer(part.allowed, part.now, settled.outcomes, costs)
    return Decided(answer, part.keys, part.states, part.commit and bool(settled.writes))


def _shared(bill: Bill, parts: Sequence[_Part], *, allowed: bool) -> Decided:
    """The answer to a bill whose parts live in several places.

    Each place has a clock of its own: waits are told from the earliest, so that the same instants come out.
    """
    if not parts:
        return Decided(Answer(True, 0, (), ()), (), (), False)
    now = min(part.now for part in parts)
    if max(part.now for part in parts) - now > _SKEW_NS:
        now = next((part.now for part in parts if not part.allowed), parts[0].now)
    by_charge: dict[int, tuple[Outcome, int, bytes, State | None]] = {}
    for part in parts:
        rules = [charge.limit.rule for charge in part.charges]
        costs = [charge.cost if allowed or not part.allowed else 0 for charge in part.charges]
        shadows = [charge.limit.shadow for charge in part.charges]
        leases = [charge.lease for charge in part.charges]
        settled = settle(rules, part.states, costs, part.now, leases=leases, shadows=shadows)
        later = max(0, part.now - now) if abs(part.now - now) <= _SKEW_NS else 0
        for charge, outcome, key, state in zip(part.charges, settled.outcomes, part.keys, part.states, strict=True):
            by_charge[id(charge.limit)] = _later(outcome, later), charge.cost, key, state
    listed = [by_charge[id(charge.limit)] for charge in bill.charges]
    outcomes, costs_, keys, states = zip(*listed, strict=True)
    return Decided(Answer(allowed, now, outcomes, costs_), keys, states, True)


_SKEW_NS: Final = 1_000_000_000


def _later(outcome: Outcome, ns: int) -> Outcome:
    """The same instants, told from a clock reading that lies ``ns`` earlier."""
    if not ns:
        return outcome
    replenish = outcome.replenish_after + ns if outcome.replenish_after else 0
    reset = outcome.reset_after + ns if outcome.reset_after else 0
    match outcome:
        case Refused(retry_after=wait):
            return replace(outcome, retry_after=wait + ns, replenish_after=replenish, reset_after=reset)
        case Admitted() | Never():
            return replace(outcome, replenish_after=replenish, reset_after=reset)


def _given_back(part: _Part) -> Iterable[Change]:
    """What undoes a part that was admitted and charged."""
    if part.error is not None or not part.allowed:
        return
    settled, costs = settled_bill(part.charges, part.states, part.now)
    for charge, cost, outcome in zip(part.charges, costs, settled.outcomes, strict=True):
        if cost and isinstance(outcome, Admitted):
            token = charge.lease.token if charge.lease else 0
            yield Change(charge, Receipt(part.now, cost, token, outcome), give_back=cost)


def _granted(topology: Topology, bill: Bill, now: Now, clock: bool) -> Flow[Bill]:
    """A bill with flexible costs in several places: one look at all of them says what fits."""
    if not any(charge.flexible for charge in bill.charges):
        return bill
    if len({slot_of(stored_key(charge)) for charge in bill.charges}) == 1:
        return bill
    parts = _by_slot(0, [replace(charge, cost=0, flexible=False) for charge in bill.charges], commit=False)
    yield from _decide_parts(topology, parts, now, clock)
    error = next((part.error for part in parts if part.error is not None), None)
    if error is not None:
        raise error
    seen = {id(charge.limit): (state, part.now) for part in parts for charge, state in zip(part.charges, part.states, strict=True)}
    costs = grant(
        [charge.limit.rule for charge in bill.charges],
        [seen[id(charge.limit)][0] for charge in bill.charges],
        [charge.cost for charge in bill.charges],
        max(at for _, at in seen.values()),
        flexible=[charge.flexible for charge in bill.charges],
        shadows=[charge.limit.shadow for charge in bill.charges],
    )
    fixed = [replace(charge, cost=cost, flexible=False) for charge, cost in zip(bill.charges, costs, strict=True)]
    return Bill(fixed, bill.commit)


def change(
    topology: Topology, groups: Sequence[Sequence[Change]], now: Now, clock: bool
) -> Flow[list[tuple[bool, ...] | StoreError]]:
    """Apply groups of changes, each in one step (in a cluster: in one step per slot); for each change whether in time."""
    shares: dict[tuple[int, int | None], list[int]] = {}
    keys = [[stored_key(change.charge) for change in group] for group in groups]
    for index, group in enumerate(groups):
        for at in range(len(group)):
            slot = slot_of(keys[index][at]) if topology.clustered else None
            shares.setdefault((index, slot), []).append(at)
    results: list[list[bool]] = [[False] * len(group) for group in groups]
    errors: dict[int, StoreError] = {}
    about = now
    for _ in range(2):
        calls = []
        places: list[list[tuple[int, list[int]]]] = []
        for slot in dict.fromkeys(slot for _, slot in shares):
            mine = [(index, ats) for (index, other), ats in shares.items() if other == slot]
            for first in range(0, len(mine), MOST_BILLS):
                some = mine[first : first + MOST_BILLS]
                changes = [groups[index][at] for index, ats in some for at in ats]
                lines = [form_of(change.charge.limit).change_line(change, about()) for change in changes]
                head = b"".join(len(ats).to_bytes(2, "little") for _, ats in some)
                given = [b"%d" % (now() // 1000)] if clock else []
                names = [keys[index][at] for index, ats in some for at in ats]
                calls.append(run(topology, slot, script("change"), names, [head, *lines, *given]))
                places.append(some)
        if not calls:
            break
        stood = 0
        again: dict[tuple[int, int | None], list[int]] = {}
        for some, reply in zip(places, (yield from together(calls)), strict=True):
            if not isinstance(reply, bytes):
                error = reply if isinstance(reply, StoreError) else StoreUnavailable(f"Redis store: answered {reply!r}")
                errors.update((index, error) for index, _ in some)
                continue
            fields = reply.split(b" ")
            stood = max(stood, int(fields[0]) * 1000)
            for (index, ats), digits in zip(some, fields[1:], strict=True):
                if digits == b"?":
                    slot = slot_of(keys[index][ats[0]]) if topology.clustered else None
                    again[index, slot] = ats
                    continue
                for at, digit in zip(ats, digits.decode(), strict=True):
                    results[index][at] = digit == "1"
        shares = again
        about = lambda: stood  # noqa: B023, E731  # called before the next round
    for index, _ in shares:
        errors.setdefault(index, StoreUnavailable("Redis store: its clock moves by more than a window at a time"))
    return [errors.get(index) or tuple(result) for index, result in enumerate(results)]


def clears_after(topology: Topology, charge: Charge, now: Now, clock: bool) -> Flow[tuple[int, int]]:
    """See ``Store.clears_after``."""
    look = Bill([replace(charge, cost=0, lease=None, flexible=False)], commit=False)
    (decided,) = yield from decide(topology, [look], now, clock)
    if isinstance(decided, StoreError):
        raise decided
    return charge.limit.rule.clears_after(decided.states[0], decided.answer.now, charge.cost), decided.answer.now


def reset(topology: Topology, keys: Sequence[bytes]) -> Flow[None]:
    """Forget keys."""
    if not keys:
        return
    slots: dict[int | None, list[bytes]] = {}
    for key in keys:
        slots.setdefault(slot_of(key) if topology.clustered else None, []).append(key)
    for result in (yield from together([ask(topology, slot, b"DEL", *mine) for slot, mine in slots.items()])):
        if isinstance(result, StoreError):
            raise result


def clear(topology: Topology, namespace: str, limit: Limit) -> Flow[int]:
    """See ``Store.clear``."""
    count = 0
    for node in (yield from topology.masters()):
        cursor = b"0"
        while True:
            cursor, keys = yield from _scanned(topology, node, cursor, namespace, limit)
            for result in (yield from together([ask(topology, _slot(topology, key), b"DEL", key) for key in keys])):
                if isinstance(result, StoreError):
                    raise result
                count += int(result) if isinstance(result, int) else 0
            if cursor == b"0":
                break
    return count


def requota(topology: Topology, namespace: str, old: Limit, new: Limit, now: Now, clock: bool) -> Flow[int]:
    """See ``Store.requota``. Key by key, each in one step; decisions go on meanwhile."""
    seen: set[bytes] = set()
    for node in (yield from topology.masters()):
        cursor = b"0"
        while True:
            cursor, keys = yield from _scanned(topology, node, cursor, namespace, new)
            fresh = [key for key in dict.fromkeys(keys) if key not in seen]
            seen.update(fresh)
            for result in (yield from together([_requota_one(topology, key, old, new, now, clock) for key in fresh])):
                if isinstance(result, StoreError):
                    raise result
            if cursor == b"0":
                break
    return len(seen)


def _requota_one(topology: Topology, key: bytes, old: Limit, new: Limit, now: Now, clock: bool) -> Flow[bool]:
    slot = _slot(topology, key)
    for _ in range(_TRIES):
        text = yield from ask(topology, slot, b"GET", key)
        time: Any = yield from ask(topology, slot, b"TIME")
        if not isinstance(text, bytes):
            return False
        at = now() // 1000 * 1000 if clock else int(time[0]) * 1_000_000_000 + int(time[1]) * 1000
        state = form_of(old).load(_readable(text, old), at)
        scaled = None if state is None else new.rule.scaled(state, at, old.rule)
        if state is None:
            return False
        value, expires = (b"", 0) if scaled is None else form_of(new).dump(scaled)
        ms = -(-expires // 1_000_000)
        if clock:
            ms = -max(1, -(-(expires - at) // 1_000_000)) - 3_600_000
        done = yield from run(topology, slot, script("exchange"), [key], [text, value, b"%d" % ms])
        if done == 1:
            return True
    raise StoreUnavailable(f"Redis store: a key changes too often to be given its new quota ({_TRIES} tries)")


def _readable(text: bytes, limit: Limit) -> bytes:
    """A stored value in the form in which scripts tell it."""
    if len(text) == 24 and limit.algorithm.stored == "gcra":
        import struct

        return b"%d:%d:%d" % tuple(int(number) for number in struct.unpack("<3d", text))
    return text


def _scanned(topology: Topology, node: Node, cursor: bytes, namespace: str, limit: Limit) -> Flow[tuple[bytes, list[bytes]]]:
    pattern = limit_pattern(namespace, limit.name, limit.algorithm.stored, limit.by)
    (heard,) = yield [Send(node, command(b"SCAN", cursor, b"MATCH", pattern, b"COUNT", b"%d" % _SCAN))]
    if isinstance(heard, StoreError):
        topology.doubt()
        raise heard
    if isinstance(heard, Failed) or not isinstance(heard, list):
        raise StoreUnavailable(f"Redis store {node}: {heard}")
    found: Any = heard
    return found[0], found[1]


def _slot(topology: Topology, key: bytes) -> int | None:
    return slot_of(key) if topology.clustered else None
