"""Changing charges that were made, as flows: refunds, commits, cancellations, renewals."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.change import Change
from headway.errors import StoreError, StoreUnavailable
from headway.stores.redis.bills import MOST_BILLS, Now, foreign
from headway.stores.redis.calls import run, together
from headway.stores.redis.codec import form_of
from headway.stores.redis.handshake import unlike
from headway.stores.redis.keys import slot_of, stored_key
from headway.stores.redis.scripts import script
from headway.stores.redis.topology import Flow, Topology

__all__ = ["change"]


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
    in_time: list[list[bool]] = [[False] * len(group) for group in groups]
    errors: dict[int, StoreError] = {}
    about = now()
    for _ in range(2):
        calls = []
        places: list[list[tuple[int, list[int]]]] = []
        for slot in dict.fromkeys(slot for _, slot in shares):
            mine = [(index, ats) for (index, other), ats in shares.items() if other == slot]
            for first in range(0, len(mine), MOST_BILLS):
                some = mine[first : first + MOST_BILLS]
                changes = [groups[index][at] for index, ats in some for at in ats]
                lines = [form_of(change.charge.limit).change_line(change, about) for change in changes]
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
            if isinstance(reply, StoreError):
                errors.update((index, reply) for index, _ in some)
                continue
            fields = reply.split(b" ")
            if len(fields) != len(some) + 1:
                errors.update((index, unlike(topology.settings, reply)) for index, _ in some)
                continue
            stood = max(stood, int(fields[0]) * 1000)
            for (index, ats), digits in zip(some, fields[1:], strict=True):
                if digits == b"?":
                    slot = slot_of(keys[index][ats[0]]) if topology.clustered else None
                    again[index, slot] = ats
                    continue
                if digits[:1] == b"!":
                    errors[index] = foreign([groups[index][ats[int(digits[1:])]].charge], (), topology.settings)
                    continue
                for at, digit in zip(ats, digits.decode("ascii", "replace"), strict=False):
                    in_time[index][at] = digit == "1"
        shares = again
        about = stood  # the server's, far from ours
    for index, _ in shares:
        errors.setdefault(index, StoreUnavailable("Redis store: its clock moves by more than a window at a time"))
    return [errors.get(index) or tuple(group) for index, group in enumerate(in_time)]
