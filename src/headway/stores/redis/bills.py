"""Bills on their way to ``advance.lua`` and back: what is sent for some of them, and what a reply says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from headway.core.charge import Charge
from headway.core.key import Key
from headway.core.limit import Limit
from headway.core.rule import State
from headway.errors import StoreError, StoreUnusable
from headway.stores.base import Answer, settled_bill
from headway.stores.redis.codec import Form, form_of
from headway.stores.redis.handshake import STRANGE, unlike
from headway.stores.redis.keys import stored_key
from headway.stores.refusal_cache import RefusalCache

__all__ = [
    "MOST_BILLS",
    "MOST_CHARGES",
    "MOST_TOGETHER",
    "Bill",
    "Decided",
    "Now",
    "Packed",
    "Part",
    "decided",
    "foreign",
    "loaded",
    "packed",
    "read",
]

MOST_BILLS: Final = 128
"""Bills in one script call; more go in several calls of the same round trip."""

MOST_CHARGES: Final = 1024
"""Charges in one script call."""

MOST_TOGETHER: Final = 2**14 - 1
"""Charges of one bill: their number travels in 14 bits."""

Now = Callable[[], int]
"""About the store's clock, ns since 1970: good enough to choose calendar windows by."""


class Bill(NamedTuple):
    """Charges that are decided together.

    Attributes:
        charges: see ``Store.advance``.
        commit: see ``Store.advance``.
        refusals: where a store remembers some of what these keys refuse; told when the bill is given back.
    """

    charges: Sequence[Charge]
    commit: bool = True
    refusals: RefusalCache | None = None

    def part(self) -> Part:
        """The whole of it, where all keys live in one place."""
        charges = self.charges
        keys = charges.keys if isinstance(charges, Packed) else [stored_key(charge) for charge in charges]
        return Part(charges, keys, self.commit)


class Packed(Sequence[Charge]):
    """Charges of a fixed list of limits, without leases: what they look like to Redis is at hand; they are made when asked for.

    Args:
        namespace: see ``Charge``.
        limits: the limits.
        names: the canonical key of each.
        costs: of each.
        keys: the stored key of each.
        forms: of each.
    """

    __slots__ = ("_charges", "costs", "forms", "keys", "limits", "names", "namespace")

    def __init__(
        self,
        namespace: str,
        limits: Sequence[Limit],
        names: Sequence[Key],
        costs: Sequence[int],
        keys: Sequence[bytes],
        forms: Sequence[Form],
    ) -> None:
        self.namespace = namespace
        self.limits = limits
        self.names = names
        self.costs = costs
        self.keys = keys
        self.forms = forms
        self._charges: list[Charge] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        if self._charges is None:
            each = zip(self.limits, self.names, self.costs, strict=True)
            self._charges = [Charge(self.namespace, limit, name, cost) for limit, name, cost in each]
        return self._charges[index]


class Decided:
    """What was decided about a bill; the outcomes are worked out when somebody asks.

    Attributes:
        charges: the bill's.
        keys: the stored keys, one per charge.
        states: what they held before, as the core keeps it.
        allowed: all were admitted.
        now: the server's clock, ns since 1970.
        commit: see ``Bill``.
    """

    __slots__ = ("_answer", "_joined", "_writes", "allowed", "charges", "commit", "keys", "now", "states")

    def __init__(
        self,
        charges: Sequence[Charge],
        keys: Sequence[bytes],
        states: Sequence[State | None],
        allowed: bool,
        now: int,
        commit: bool,
        answer: Answer | None = None,
    ) -> None:
        self.charges = charges
        self.keys = keys
        self.states = states
        self.allowed = allowed
        self.now = now
        self.commit = commit
        self._answer = self._joined = answer
        self._writes = True

    @property
    def answer(self) -> Answer:
        """For the caller."""
        if self._answer is None:
            settled, costs = settled_bill(self.charges, self.states, self.now)
            self._writes = bool(settled.writes)
            self._answer = Answer(self.allowed, self.now, settled.outcomes, costs)
        return self._answer

    @property
    def joined(self) -> Answer | None:
        """The answer to a bill whose keys live in several places: it cannot be worked out from one clock reading."""
        return self._joined

    def wrote(self) -> bool:
        """Whether something was, or may have been, written: also by a refusal, a cap or a count."""
        if self.commit and not self.allowed:
            _ = self.answer
        return self.commit and (self.allowed or self._writes)


class Part:
    """The charges of one bill that live in one place, and what came of them.

    Attributes:
        charges: some of the bill's, or all.
        keys: the stored keys, one per charge.
        commit: see ``Bill``.
        allowed: all were admitted.
        now: the server's clock, ns since 1970.
        states: what the keys held before, as the core keeps it.
        error: why nobody knows.
        undecided: the script could not say, or was not asked yet.
        alone: it has to be decided by a script call of its own.
    """

    __slots__ = ("allowed", "alone", "charges", "commit", "error", "keys", "now", "states", "undecided")

    def __init__(self, charges: Sequence[Charge], keys: Sequence[bytes], commit: bool) -> None:
        self.charges = charges
        self.keys = keys
        self.commit = commit
        self.allowed = False
        self.now = 0
        self.states: Sequence[State | None] = ()
        self.error: StoreError | None = None
        self.undecided = True
        self.alone = False


def packed(parts: Sequence[Part], about: int, given: int | None) -> tuple[list[bytes], list[bytes]]:
    """The KEYS and ARGV of advance.lua."""
    keys: list[bytes] = []
    head = bytearray()
    args = [b""]
    for part in parts:
        keys += part.keys
        flexible = False
        charges = part.charges
        if isinstance(charges, Packed):
            args += [
                form.ones if cost == 1 and form.ones is not None else form.line(cost, None, False, about)
                for form, cost in zip(charges.forms, charges.costs, strict=True)
            ]
            charges = ()
        for charge in charges:
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


def read(parts: Sequence[Part], reply: bytes | StoreError, where: object) -> None:
    """Fill in what a reply of advance.lua says about the parts that were sent; ``where`` is the store's name."""
    if isinstance(reply, StoreError):
        for part in parts:
            part.error, part.undecided = reply, False
        return
    fields = reply.split(b" ")
    if len(fields) != 1 + sum(1 + len(part.keys) for part in parts):
        for part in parts:
            part.error, part.undecided = unlike(where, reply), False
        return
    now = int(fields[0]) * 1000
    at = 1
    for part in parts:
        size = len(part.keys)
        part.now = now
        said, texts = fields[at], fields[at + 1 : at + 1 + size]
        if said != b"?":
            part.undecided = False
            part.allowed = said == b"1"
            try:
                part.states = loaded(part.charges, texts, now, where)
            except StoreUnusable as error:
                part.error, part.allowed = error, False
            else:
                if said == b"!":
                    part.error = foreign(part.charges, texts, where)
        at += 1 + size


def loaded(charges: Sequence[Charge], texts: Sequence[bytes], now: int, where: object) -> list[State | None]:
    """The states that a script tells, as the core keeps them; ``where`` as for ``read``.

    Raises:
        StoreUnusable: one is none: somebody else wrote it.
    """
    forms = charges.forms if isinstance(charges, Packed) else [form_of(charge.limit) for charge in charges]
    states: list[State | None] = []
    for form, text in zip(forms, texts, strict=True):
        try:
            states.append(None if text == b"-" else form.load(text, now))
        except STRANGE as error:
            raise foreign([charges[len(states)]], [text], where) from error
    return states


def foreign(charges: Sequence[Charge], texts: Sequence[bytes], where: object) -> StoreUnusable:
    """The error of keys that hold what no state is; ``where`` as for ``read``."""
    keys = " or ".join(f"{stored_key(charge).decode()} of limit {charge.limit.name!r}" for charge in charges)
    held = ", ".join(repr(text[:40].decode("ascii", "replace")) for text in texts if text not in (b"-", b"!"))
    return StoreUnusable(
        f"Redis store {where}: the key {keys} holds what headway did not write{held and f' ({held})'}; "
        "`headway store reset` forgets it"
    )


def decided(part: Part) -> Decided | StoreError:
    """What was decided about a bill that lives in one place."""
    if part.error is not None:
        return part.error
    return Decided(part.charges, part.keys, part.states, part.allowed, part.now, part.commit)
