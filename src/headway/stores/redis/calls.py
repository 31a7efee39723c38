"""Calling scripts and commands on whichever server it is, as flows: what a reply such as NOSCRIPT, MOVED or ASK asks for.

A command is sent again only where the reply says that nothing was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

from headway.errors import StoreError, StoreUnavailable
from headway.stores.redis.handshake import problem_of, unlike
from headway.stores.redis.resp import Failed, Reply, Unreadable, command
from headway.stores.redis.scripts import Script
from headway.stores.redis.settings import Node
from headway.stores.redis.topology import Flow, Heard, Send, Topology

__all__ = ["answer_of", "ask", "insisting", "run", "run_untimed", "together"]

_Value = TypeVar("_Value")

_MOST_HOPS: Final = 5
_ASKING: Final = command(b"ASKING")
_TRY_AGAIN_S: Final = 0.005
_MOST_TRIES: Final = 20
"""Of a command whose keys are on their way from one node to another; the deadline ends them sooner."""

_Hop: TypeAlias = tuple[Node, bytes, float]
"""Where to go, what to say first, and the seconds to wait before."""


def run(
    topology: Topology, slot: int | None, script: Script, keys: Sequence[bytes], args: Sequence[bytes]
) -> Flow[bytes]:
    """Run ``advance`` or ``change`` where the keys are; before the first argument goes until when the answer is awaited.

    Raises:
        StoreError: it did not run, or nobody knows whether it did.
    """
    node = yield from topology.where(slot)
    reply: Reply = None
    for _ in range(2):
        sent = topology.ticks()
        timed = (topology.awaited(node) + args[0], *args[1:])
        node, reply = yield from _run_on(topology, node, slot, script, keys, timed)
        if not isinstance(reply, bytes):
            break
        late, _, rest = reply.partition(b" ")
        try:
            now_us = int(rest if late == b"late" else late)
        except ValueError:
            raise unlike(node, reply) from None
        topology.heard(node, sent, now_us)
        if late != b"late":
            return reply
    raise StoreUnavailable(f"Redis store {node}: answered {reply!r}, its clock moves too fast for a deadline")


def run_untimed(
    topology: Topology, slot: int | None, script: Script, keys: Sequence[bytes], args: Sequence[bytes]
) -> Flow[Reply]:
    """Run another script where its keys are.

    Raises:
        StoreError: as ``run``.
    """
    node = yield from topology.where(slot)
    return (yield from _run_on(topology, node, slot, script, keys, args))[1]


def _run_on(
    topology: Topology, node: Node, slot: int | None, script: Script, keys: Sequence[bytes], args: Sequence[bytes]
) -> Flow[tuple[Node, Reply]]:
    """Begin with a server that should be the right one; the one that answered, and its reply."""
    rest = (b"%d" % len(keys), *keys, *args)
    packed = command(b"EVALSHA", script.sha, *rest)
    (heard,) = yield [Send(node, packed)]
    if isinstance(heard, Failed):
        known = command(b"EVAL", script.text, *rest)
        node, heard = yield from _hopping(topology, slot, node, packed, known, heard)
    return node, answer_of(topology, node, heard)


def ask(topology: Topology, slot: int | None, *parts: bytes) -> Flow[Reply]:
    """Run one command where its key is.

    Raises:
        StoreError: as ``run``.
    """
    node = yield from topology.where(slot)
    packed = command(*parts)
    (heard,) = yield [Send(node, packed)]
    if isinstance(heard, Failed):
        node, heard = yield from _hopping(topology, slot, node, packed, packed, heard)
    return answer_of(topology, node, heard)


def _hopping(
    topology: Topology, slot: int | None, node: Node, packed: bytes, known: bytes, heard: Heard
) -> Flow[tuple[Node, Heard]]:
    """Go where error replies send us, saying ``packed``, or ``known`` where the script is not; the last reply."""
    hops = tries = 0
    while isinstance(heard, Failed) and hops < _MOST_HOPS and tries < _MOST_TRIES:
        hop: _Hop | None = (node, b"", 0.0)
        if heard.kind == "NOSCRIPT":
            packed = known
        elif heard.kind == "TRYAGAIN" and slot is not None:  # some keys of a bill have moved already, some have not yet
            node = yield from topology.where(slot)
            hop, tries = (node, b"", _TRY_AGAIN_S), tries + 1
        else:
            hop = yield from _hop(topology, slot, node, heard)
        if hop is None:
            break
        hops += -1 if heard.kind == "TRYAGAIN" else 1  # the hop that led there is made again
        node, prefix, pause = hop
        (heard,) = yield [Send(node, prefix + packed, 2 if prefix else 1, pause=pause)]
    return node, heard


def insisting(flow: Flow[_Value]) -> Flow[_Value]:
    """A flow whose commands are sent also where the time of the call is nearly up."""
    try:
        sends = next(flow)
        while True:
            sends = flow.send((yield [send._replace(insists=True) for send in sends]))
    except StopIteration as stop:
        value: _Value = stop.value
        return value


def together(flows: Sequence[Flow[_Value]]) -> Flow[list[_Value | StoreError]]:
    """Run several flows side by side: what they send at the same time is sent at the same time; their ends, in order."""
    ends: list[_Value | StoreError | None] = [None] * len(flows)
    sending: list[tuple[int, list[Send]]] = []

    def step(index: int, heard: list[Heard] | None) -> None:
        try:
            sends = next(flows[index]) if heard is None else flows[index].send(heard)
        except StopIteration as stop:
            ends[index] = stop.value
        except StoreError as error:
            ends[index] = error
        else:
            sending.append((index, sends))

    for index in range(len(flows)):
        step(index, None)
    while sending:
        round_, sending[:] = list(sending), []
        heard = yield [send for _, sends in round_ for send in sends]
        at = 0
        for index, sends in round_:
            step(index, heard[at : at + len(sends)])
            at += len(sends)
    return ends  # type: ignore[return-value]  # every flow has ended, in a value or an error


def _hop(topology: Topology, slot: int | None, node: Node, failed: Failed) -> Flow[_Hop | None]:
    """Where to go after a reply that says that nothing was done there, and what to say first; None: nowhere."""
    kind, rest = failed.kind, failed.text.partition(" ")[2]
    if kind in ("MOVED", "ASK") and slot is not None:
        host, _, port = rest.partition(" ")[2].rpartition(":")
        if not port.isdecimal():
            return None
        place = topology.settings.named(host, int(port), node)
        if kind == "ASK":
            return place, _ASKING, 0.0
        topology.moved(slot, place)
        return place, b"", 0.0
    if kind in ("READONLY", "MASTERDOWN"):  # it was the master once
        topology.doubt()
        place = yield from topology.where(slot)
        return (place, b"", 0.0) if place != node else None
    return None


def answer_of(topology: Topology, node: Node, heard: Heard) -> Reply:
    """A reply that is an answer.

    Raises:
        StoreError: it is none.
    """
    if isinstance(heard, StoreError):
        topology.doubt()
        raise heard
    if isinstance(heard, Failed | Unreadable):
        if isinstance(heard, Failed) and heard.kind in ("MOVED", "ASK"):
            raise StoreUnavailable(f"Redis store {node}: sends us on and on ({heard.text})")
        raise problem_of(node, heard)
    return heard
