"""What is not on the call path, as flows: forgetting keys, walking through all keys of a limit, looking ahead."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from headway.core.charge import Charge
from headway.core.limit import Limit
from headway.errors import StoreError, StoreUnavailable, StoreUnusable
from headway.stores.redis.bills import Bill, Now
from headway.stores.redis.calls import answer_of, ask, run_untimed, together
from headway.stores.redis.codec import form_of
from headway.stores.redis.deciding import decide
from headway.stores.redis.handshake import STRANGE, unlike
from headway.stores.redis.keys import limit_pattern, slot_of
from headway.stores.redis.resp import command
from headway.stores.redis.scripts import script
from headway.stores.redis.settings import Node
from headway.stores.redis.topology import Flow, Send, Topology

__all__ = ["clear", "clears_after", "requota", "reset"]

_SCAN: Final = 500
_TRIES: Final = 20


def clears_after(topology: Topology, charge: Charge, now: Now, clock: bool) -> Flow[tuple[int, int]]:
    """See ``Store.clears_after``."""
    look = Bill([replace(charge, cost=0, lease=None, flexible=False)], commit=False)
    (decided,) = yield from decide(topology, [look], now, clock)
    if isinstance(decided, StoreError):
        raise decided
    return charge.limit.rule.clears_after(decided.states[0], decided.now, charge.cost), decided.now


def reset(topology: Topology, keys: Sequence[bytes]) -> Flow[None]:
    """Forget keys."""
    if not keys:
        return
    slots: dict[int | None, list[bytes]] = {}
    for key in keys:
        slots.setdefault(slot_of(key) if topology.clustered else None, []).append(key)
    for reply in (yield from together([ask(topology, slot, b"DEL", *mine) for slot, mine in slots.items()])):
        if isinstance(reply, StoreError):
            raise reply


def clear(topology: Topology, namespace: str, limit: Limit) -> Flow[int]:
    """See ``Store.clear``."""
    count = 0
    for node in (yield from topology.masters()):
        cursor = b"0"
        while True:
            cursor, keys = yield from _scanned(topology, node, cursor, namespace, limit)
            for reply in (yield from together([ask(topology, _slot(topology, key), b"DEL", key) for key in keys])):
                if isinstance(reply, StoreError):
                    raise reply
                count += int(reply) if isinstance(reply, int) else 0
            if cursor == b"0":
                break
    return count


def requota(topology: Topology, namespace: str, old: Limit, new: Limit, now: Now, clock: bool) -> Flow[int]:
    """See ``Store.requota``. Key by key, each in one step; decisions go on meanwhile. What others wrote is left as it is."""
    seen: set[bytes] = set()
    count = 0
    for node in (yield from topology.masters()):
        cursor = b"0"
        while True:
            cursor, keys = yield from _scanned(topology, node, cursor, namespace, new)
            fresh = [key for key in dict.fromkeys(keys) if key not in seen]
            seen.update(fresh)
            for reply in (yield from together([_requota_one(topology, key, old, new, now, clock) for key in fresh])):
                if isinstance(reply, StoreError):
                    raise reply
                count += reply
            if cursor == b"0":
                break
    return count


def _requota_one(topology: Topology, key: bytes, old: Limit, new: Limit, now: Now, clock: bool) -> Flow[bool]:
    slot = _slot(topology, key)
    for _ in range(_TRIES):
        try:
            text = yield from ask(topology, slot, b"GET", key)
        except StoreUnusable as error:
            if "WRONGTYPE" in str(error):
                return False
            raise
        time: Any = yield from ask(topology, slot, b"TIME")
        if not isinstance(text, bytes):
            return False
        at = now() // 1000 * 1000 if clock else int(time[0]) * 1_000_000_000 + int(time[1]) * 1000
        try:
            state = form_of(old).load(_readable(text, old), at)
        except STRANGE:
            return False
        scaled = None if state is None else new.rule.scaled(state, at, old.rule)
        if state is None:
            return False
        value, expires = (b"", 0) if scaled is None else form_of(new).dump(scaled)
        ms = -(-expires // 1_000_000)
        if clock:
            ms = -max(1, -(-(expires - at) // 1_000_000)) - 3_600_000
        done = yield from run_untimed(topology, slot, script("exchange"), [key], [text, value, b"%d" % ms])
        if done == 1:
            return True
    raise StoreUnavailable(f"Redis store: a key changes too often to be given its new quota ({_TRIES} tries)")


def _readable(text: bytes, limit: Limit) -> bytes:
    """A stored value in the form in which scripts tell it."""
    if len(text) == 24 and limit.algorithm.stored == "gcra":
        return b"%d:%d:%d" % tuple(int(number) for number in struct.unpack("<3d", text))
    return text


def _scanned(
    topology: Topology, node: Node, cursor: bytes, namespace: str, limit: Limit
) -> Flow[tuple[bytes, list[bytes]]]:
    pattern = limit_pattern(namespace, limit.name, limit.algorithm.stored, limit.by)
    (heard,) = yield [Send(node, command(b"SCAN", cursor, b"MATCH", pattern, b"COUNT", b"%d" % _SCAN))]
    found = answer_of(topology, node, heard)
    match found:
        case [bytes(after), list(keys)] if all(isinstance(key, bytes) for key in keys):
            return after, keys  # type: ignore[return-value]  # all of them are bytes
        case _:
            raise unlike(node, found)


def _slot(topology: Topology, key: bytes) -> int | None:
    return slot_of(key) if topology.clustered else None
