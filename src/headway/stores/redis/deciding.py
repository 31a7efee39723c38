"""Deciding bills, as flows, on one server and in a cluster.

In a cluster the limits of one bill may live in different slots. Each slot's share is decided at the same time as the
others; if one refuses, what the others charged is given back in one more round trip. Until then somebody else may see
those units as used, so a bill may be refused that would have fitted, never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from headway.core.bill import grant, settle
from headway.core.change import Change
from headway.core.lease import Receipt
from headway.core.outcome import Admitted, Never, Outcome, Refused
from headway.core.rule import State
from headway.errors import StoreError, StoreUnavailable
from headway.stores.base import Answer, settled_bill
from headway.stores.redis.bills import MOST_BILLS, MOST_CHARGES, Bill, Decided, Now, Part, decided, packed, read
from headway.stores.redis.calls import insisting, run, together
from headway.stores.redis.changing import change
from headway.stores.redis.handshake import is_full
from headway.stores.redis.keys import slot_of, stored_key
from headway.stores.redis.scripts import script
from headway.stores.redis.topology import Flow, Topology
from headway.stores.redis.undo import Undo

__all__ = ["decide"]

_SKEW_NS: Final = 1_000_000_000
"""Clocks of a cluster's nodes that differ by more are not brought together."""


def decide(topology: Topology, bills: Sequence[Bill], now: Now, clock: bool) -> Flow[list[Decided | StoreError]]:
    """Decide bills, each all or nothing and in their order; for each its answer, or why there is none.

    Args:
        topology: where the keys are.
        bills: any number.
        now: about the store's clock.
        clock: a test's: decide by ``now`` instead of the server's time.
    """
    if topology.clustered:
        return (yield from _decide_spread(topology, bills, now, clock))
    parts = [bill.part() for bill in bills]
    yield from _decide_parts(topology, parts, now, clock)
    return [decided(part) for part in parts]


def _decide_spread(
    topology: Topology, bills: Sequence[Bill], now: Now, clock: bool
) -> Flow[list[Decided | StoreError]]:
    """``decide`` where keys live in slots."""
    shares: list[list[Part]] = []
    fixed: list[Bill] = []
    for bill in bills:
        fixed.append((yield from _granted(topology, bill, now, clock)))
        shares.append(_by_slot(fixed[-1]))
    yield from _decide_parts(topology, [part for share in shares for part in share], now, clock)
    back: list[list[Change]] = []
    undoing: list[Bill] = []
    answers: list[Decided | StoreError] = []
    for bill, share in zip(fixed, shares, strict=True):
        if len(share) == 1:
            answers.append(decided(share[0]))
            continue
        error = next((part.error for part in share if part.error is not None), None)
        allowed = error is None and all(part.allowed for part in share)
        if bill.commit and not allowed:
            back.append([undo for part in share for undo in _given_back(part)])
            undoing.append(bill)
        answers.append(error or _joined(bill, share, now(), allowed=allowed))
    if back:
        try:
            yield from insisting(change(topology, back, now, clock))
        finally:  # others may have been refused because of it
            for bill, undone in zip(undoing, back, strict=True):
                if bill.refusals is not None:
                    bill.refusals.given_back([stored_key(undo.charge) for undo in undone])
    return answers


def _by_slot(bill: Bill) -> list[Part]:
    slots: dict[int, Part] = {}
    for charge in bill.charges:
        key = stored_key(charge)
        part = slots.setdefault(slot_of(key), Part([], [], bill.commit))
        part.charges = [*part.charges, charge]
        part.keys = [*part.keys, key]
    return list(slots.values())


def _decide_parts(topology: Topology, parts: Sequence[Part], now: Now, clock: bool) -> Flow[None]:
    """Fill in what became of each part.

    Once more where a calendar's boundaries did not reach; and each by itself where nothing was done together because one of
    them had to write, and the server is full: whom it has refused it refuses still.
    """
    about = now()
    for _ in range(3):
        groups = _groups(topology, [part for part in parts if part.undecided])
        if not groups:
            return
        given = now() if clock else None
        calls = [run(topology, slot, script("advance"), *packed(group, about, given)) for slot, group in groups]
        replies = yield from together(calls) if len(calls) > 1 else _alone(calls[0])
        for (_, group), reply in zip(groups, replies, strict=True):
            if len(group) > 1 and is_full(reply):
                for part in group:
                    part.alone = True
            else:
                read(group, reply, topology.settings)
        about = max((part.now for part in parts if part.undecided), default=0) or about  # the server's, far from ours
    for part in parts:
        if part.undecided:
            part.error = StoreUnavailable("Redis store: its clock moves by more than a window at a time")


def _alone(call: Flow[bytes]) -> Flow[list[bytes | StoreError]]:
    try:
        return [(yield from call)]
    except StoreError as error:
        return [error]


def _groups(topology: Topology, parts: Sequence[Part]) -> list[tuple[int | None, list[Part]]]:
    """Parts that travel in one script call: of one slot in a cluster, and not too many."""
    groups: list[tuple[int | None, list[Part]]] = []
    latest: dict[int | None, tuple[list[Part], int]] = {}
    for part in parts:
        slot = slot_of(part.keys[0]) if topology.clustered else None
        group, charges = latest.get(slot, ([], MOST_CHARGES))
        if part.alone or len(group) >= MOST_BILLS or charges + len(part.keys) > MOST_CHARGES:
            group, charges = [], 0
            groups.append((slot, group))
        group.append(part)
        latest[slot] = group, MOST_CHARGES if part.alone else charges + len(part.keys)
    return groups


def _joined(bill: Bill, parts: Sequence[Part], about: int, *, allowed: bool) -> Decided:
    """The answer to a bill whose parts live in several places.

    Each place has a clock of its own: waits are told from the earliest, so that the same instants come out.
    """
    now = min((part.now for part in parts), default=about)
    apart = max((part.now for part in parts), default=about) - now > _SKEW_NS
    if apart:
        now = next((part.now for part in parts if not part.allowed), now)
    found: dict[int, tuple[Outcome, bytes, State | None]] = {}
    for part in parts:
        settled = settle(
            [charge.limit.rule for charge in part.charges],
            part.states,
            [charge.cost if allowed or not part.allowed else 0 for charge in part.charges],
            part.now,
            leases=[charge.lease for charge in part.charges],
            shadows=[charge.limit.shadow for charge in part.charges],
        )
        later = 0 if apart else part.now - now
        for charge, outcome, key, state in zip(part.charges, settled.outcomes, part.keys, part.states, strict=True):
            found[id(charge)] = _later(outcome, later), key, state
    listed = [found[id(charge)] for charge in bill.charges]
    answer = Answer(allowed, now, tuple([one[0] for one in listed]), tuple([charge.cost for charge in bill.charges]))
    keys, states = [one[1] for one in listed], [one[2] for one in listed]
    return Decided(bill.charges, keys, states, allowed, now, bill.commit, answer)


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


def _given_back(part: Part) -> Iterable[Change]:
    """What undoes a part that was admitted and charged."""
    if part.error is not None or not part.allowed:
        return
    settled, costs = settled_bill(part.charges, part.states, part.now)
    for charge, cost, outcome, state in zip(part.charges, costs, settled.outcomes, part.states, strict=True):
        if cost and isinstance(outcome, Admitted):
            token = charge.lease.token if charge.lease else 0
            yield Undo(charge, Receipt(part.now, cost, token, outcome), give_back=cost, before=state)


def _granted(topology: Topology, bill: Bill, now: Now, clock: bool) -> Flow[Bill]:
    """A bill with flexible costs in several places: one look at all of them says what fits."""
    if not any(charge.flexible for charge in bill.charges):
        return bill
    if len({slot_of(stored_key(charge)) for charge in bill.charges}) == 1:
        return bill
    looks = [replace(charge, cost=0, lease=None, flexible=False) for charge in bill.charges]
    parts = _by_slot(Bill(looks, commit=False))
    yield from _decide_parts(topology, parts, now, clock)
    if any(part.error for part in parts):
        return bill  # whoever cannot be reached now will say so again
    seen: dict[int, tuple[State | None, int]] = {}
    for part in parts:
        seen.update((id(charge), (state, part.now)) for charge, state in zip(part.charges, part.states, strict=True))
    costs = grant(
        [charge.limit.rule for charge in bill.charges],
        [seen[id(look)][0] for look in looks],
        [charge.cost for charge in bill.charges],
        max(at for _, at in seen.values()),
        flexible=[charge.flexible for charge in bill.charges],
        shadows=[charge.limit.shadow for charge in bill.charges],
    )
    return Bill(
        [replace(charge, cost=cost, flexible=False) for charge, cost in zip(bill.charges, costs, strict=True)],
        bill.commit,
        bill.refusals,
    )
