"""``one_way`` and ``trips``: a fixed list of limits on one Redis store, decided again and again: the hot path.

Everything that does not depend on the keys is packed once. What the script answers is returned as the states before the
decision: ``core.bill.settle`` on them gives the outcomes if somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.core.rule import State
from headway.errors import StoreUnavailable
from headway.stores.base import Answer
from headway.stores.redis.bills import loaded
from headway.stores.redis.codec import form_of
from headway.stores.redis.handshake import STRANGE, problem_of, unlike
from headway.stores.redis.keys import limit_part, tag_of
from headway.stores.redis.resp import Failed, Unreadable
from headway.stores.redis.scripts import script
from headway.stores.refusal_cache import Known

if TYPE_CHECKING:
    from headway.stores.redis.base import BaseRedisStore
    from headway.stores.redis.sync import RedisStore

__all__ = ["Made", "Near", "known_refusals", "one_way", "parts_of", "trips"]

Made: TypeAlias = tuple[bool, int, "Sequence[State | None] | Answer"]
"""Whether all admitted, the store's clock in ns since 1970, and each key's state before, or the whole answer."""

_MOST_NEAR: Final = 10_000
_LONGEST_NEAR: Final = 512
"""Characters of a bill's keys: callers choose them, so the number of refusals alone bounds no memory."""

_CLOCK_LOOK_S: Final = 0.02
"""How often it is looked at how far the server's clock is ahead."""


def known_refusals(
    store: BaseRedisStore, namespace: str, limits: Sequence[Limit], near: Near | None = None
) -> Callable[[Sequence[Key], Sequence[int]], Made | None]:
    """From one key and one cost above 0 per limit to a refusal that stands, or None: the store has to be asked."""
    cache, parts = store.refusals, parts_of(namespace, limits)
    near = near or Near(store)

    def known(keys: Sequence[Key], costs: Sequence[int]) -> Made | None:
        if not cache._known:
            return None
        made = near.get(keys, costs)
        if made is not None:
            return made
        stored = [part + tag_of(namespace, limit.by, key) for part, limit, key in zip(parts, limits, keys, strict=True)]
        found = cache.find(stored, limits, costs)
        return None if found is None else near.put(keys, stored, costs, found)

    return known


def one_way(
    store: BaseRedisStore,
    attribute: str,
    near: Near,
    ask: Callable[[Sequence[Key], Sequence[int]], Made | None],
) -> Callable[[Mapping[str, object], int], tuple[object, ...] | None]:
    """The shortest way, for a single limit keyed by one attribute: what a flood of one refused caller takes.

    Args:
        store: whose refusals are remembered.
        attribute: the limit's.
        near: the refusals that ``ask`` remembers.
        ask: for everything else.
    """
    ticks, look = store.refusals.ticks, near.single.get

    def one(attributes: Mapping[str, object], cost: int) -> tuple[object, ...] | None:
        key = attributes[attribute] if attribute in attributes else None  # noqa: SIM401  # twice as fast as get
        if key.__class__ is not str:
            return None
        found = look(key)
        if found is not None:
            least, refusal, state = found
            now = ticks()
            if now < refusal.until and cost >= least:
                return False, refusal.since + now, cost, key, state
        made = ask((key,), (cost,))
        if made is None:
            return None
        allowed, at, before = made
        return allowed, at, cost, key, before if before.__class__ is Answer else before[0]

    return one


def trips(
    store: RedisStore, namespace: str, limits: Sequence[Limit], near: Near | None = None
) -> Callable[[Sequence[Key], Sequence[int]], Made]:
    """From one key and one cost above 0 per limit to what the store decides; raises ``StoreError``."""
    cache, parts = store.refusals, parts_of(namespace, limits)
    near = near or Near(store)
    near_get = near.get
    forms = [form_of(limit) for limit in limits]
    count = len(limits)
    head = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%d\r\n" % (
        4 + 2 * count,
        script("advance").sha,
        len(str(count)),
        count,
    )
    size = (4 * count + 1).to_bytes(2, "little") + b"\r\n"
    topology = store.topology
    plain = [form.ones for form in forms]
    ones = None if None in plain else size + b"".join([b"$%d\r\n%b\r\n" % (len(line), line) for line in plain if line])
    numbers = range(count)
    bys = [limit.by for limit in limits]

    def packed(costs: Sequence[int]) -> bytes:
        about = store.now()
        lines = [form.line(cost, None, False, about) for form, cost in zip(forms, costs, strict=True)]
        return size + b"".join([b"$%d\r\n%b\r\n" % (len(line), line) for line in lines])

    def charges(keys: Sequence[Key], costs: Sequence[int]) -> list[Charge]:
        return [Charge(namespace, limits[i], keys[i], costs[i]) for i in numbers]

    next_look = 0.0

    def several(keys: Sequence[Key], costs: Sequence[int]) -> Made:
        nonlocal next_look
        made = near_get(keys, costs)
        if made is not None:
            return made
        stored = [parts[i] + tag_of(namespace, bys[i], keys[i]) for i in numbers]
        if cache._known:
            found = cache.find(stored, limits, costs)
            if found is not None:
                return near.put(keys, stored, costs, found)
        server = store.server
        if server is None:
            return _long(store, charges(keys, costs))
        cost = costs[0]
        tail = ones if ones is not None and cost == 1 and costs.count(1) == count else packed(costs)
        sent, sent_s = cache.ticks(), topology.ticks()
        named = b"".join([b"$30\r\n%b\r\n" % key for key in stored])
        reply = server.ask(head + named + b"$10\r\n" + topology.awaited(server.node) + tail)
        if reply.__class__ is not bytes:
            if isinstance(reply, Failed) and reply.kind == "NOSCRIPT":  # nothing was done
                return _long(store, charges(keys, costs))
            if isinstance(reply, Failed | Unreadable):
                raise problem_of(server.node, reply)
            raise StoreUnavailable(f"Redis store {server.node}: answered {reply!r}")
        fields = reply.split(b" ")
        if fields[0] == b"late" and len(fields) == 2 and fields[1].isdigit():  # nothing was done
            topology.heard(server.node, sent_s, int(fields[1]))
            return _long(store, charges(keys, costs))
        if len(fields) != count + 2 or not fields[0].isdigit():
            raise unlike(server.node, reply)
        now_us = int(fields[0])
        if sent_s >= next_look:
            topology.heard(server.node, sent_s, now_us)
            next_look = sent_s + _CLOCK_LOOK_S
        now = now_us * 1000
        try:
            states = [None if fields[i + 2] == b"-" else forms[i].load(fields[i + 2], now) for i in numbers]
        except STRANGE:
            states = loaded(charges(keys, costs), fields[2 : count + 2], now, store.settings)  # says which
        if fields[1] == b"1":
            if cache._known:
                cache.forget(stored)
            return True, now, states
        if fields[1] != b"0":  # nothing was done
            return _long(store, charges(keys, costs))
        bill = charges(keys, costs)
        found = store.learned(sent, bill, stored, states, now)
        if found is not None:
            near.put(keys, stored, costs, found)
        return False, now, states

    return several


def _long(store: RedisStore, charges: Sequence[Charge]) -> Made:
    answer = store.advance(charges)
    return answer.allowed, answer.now, answer


def parts_of(namespace: str, limits: Sequence[Limit]) -> list[bytes]:
    """What the stored keys of each limit begin with."""
    return [limit_part(namespace, limit.name, limit.algorithm.stored, limit.by) for limit in limits]


def _size(key: Key) -> int:
    return sum(map(_size, key)) + len(key) if isinstance(key, tuple) else len(key)


class Near:
    """The refusals of one lane by its own keys: what a flood asks for again and again, so every step here counts.

    Attributes:
        known: by keys, the costs that were refused, the refusal, and the states of these keys.
        single: the same by the key itself, where a bill has one.
        get: a refusal that stands for these keys and these costs, or None: look further.
    """

    __slots__ = ("_cache", "get", "known", "single")

    def __init__(self, store: BaseRedisStore) -> None:
        cache = self._cache = store.refusals
        known: dict[Sequence[Key], tuple[Sequence[int], Known, list[State | None]]] = {}
        self.known = known
        self.single: dict[Key, tuple[int, Known, State | None]] = {}
        look, ticks = known.get, cache.ticks

        def get(keys: Sequence[Key], costs: Sequence[int]) -> Made | None:
            found = look(keys if keys.__class__ is tuple else tuple(keys))
            if found is None or costs != found[0]:
                return None
            refusal, now = found[1], ticks()
            if now < refusal.until:
                return False, refusal.since + now, found[2]
            known.pop(tuple(keys), None)
            return None

        self.get = get

    def put(self, keys: Sequence[Key], stored: Sequence[bytes], costs: Sequence[int], known: Known) -> Made:
        """Remember a refusal that the cache knows by its stored keys."""
        states = [known.states[key] for key in stored]
        if sum(map(_size, keys)) > _LONGEST_NEAR:  # the cache knows it by its digest
            return False, known.since + self._cache.ticks(), states
        if len(self.known) >= _MOST_NEAR:
            self.known.clear()
            self.single.clear()
        now = self._cache.ticks()
        for _ in range(2):  # what is over goes sooner than others come
            oldest = next(iter(self.known), None)
            if oldest is None or now < self.known[oldest][1].until:
                break
            del self.known[oldest]
            if len(oldest) == 1:
                self.single.pop(oldest[0], None)
        self.known[tuple(keys)] = tuple(costs), known, states
        if len(keys) == 1:
            self.single[keys[0]] = costs[0], known, states[0]
        return False, known.since + self._cache.ticks(), states
