"""What a limit looks like to the Lua scripts, and back: charges and changes as lines, stored states as the core's.

Pure: nothing here reads a clock or talks to a server. A line is a letter and little-endian doubles, each a whole number
below 2**53. The rules are translated in ``shared.lua``, ``advance.lua`` and ``change.lua``; stores ask for the states
*before* a decision and let ``core.bill.settle`` say what the outcomes are, so what is told is the core's by construction.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from headway.core.block import Block
from headway.core.calendar_window import CalendarWindow
from headway.core.change import Change
from headway.core.concurrency import Concurrency
from headway.core.fixed_window import FixedWindow
from headway.core.gcra import Gcra
from headway.core.growing_wait import GrowingWait
from headway.core.leaky_bucket import LeakyBucketQueue
from headway.core.lease import Lease
from headway.core.limit import Limit
from headway.core.quota import MAX_RECOVERY_NS
from headway.core.reserved import NOTHING_YET
from headway.core.rule import State
from headway.core.sliding_log import SlidingLog
from headway.core.sliding_window import SlidingWindow
from headway.errors import LimitError
from headway.stores.redis.undo import Undo

__all__ = ["Form", "form_of"]

_MOST_UNITS: Final = 2**50
"""What a debt adds at once stops here (each is far beyond every burst), so that counters stay whole in doubles."""

_EXACT: Final = 2**53
_WINDOWS_AROUND: Final = 5


def form_of(limit: Limit) -> Form:
    """How a limit is told to the scripts.

    Raises:
        LimitError: numbers that doubles cannot hold exactly; names the bound.
    """
    found = _remembered.get(id(limit))
    if found is not None and found[0] is limit:
        return found[1]
    form = _form(limit)
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    _remembered[id(limit)] = (limit, form)
    return form


_MOST_REMEMBERED: Final = 4096
_remembered: dict[int, tuple[Limit, Form]] = {}


class Form:
    """One limit's translation.

    Args:
        limit: the limit.

    Attributes:
        ones: the line of a plain charge of 1, where it never changes.
    """

    letter = b"?"

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.burst = limit.quota.burst if limit.quota.count else 0
        self.ones: bytes | None = None

    def line(self, cost: int, lease: Lease | None, flexible: bool, now: int) -> bytes:
        """One charge.

        Args:
            cost: units.
            lease: see ``Charge``.
            flexible: see ``Charge``.
            now: about the store's clock, ns since 1970; only calendars look at it.
        """
        flags = self.limit.shadow + 2 * flexible + 4 * self.limit.count_refused
        head = (min(cost, self.burst + 1), self.burst, flags)
        return self.letter + _doubles(*head, *self._numbers(now)) + self._rest(lease)

    def change_line(self, change: Change, now: int) -> bytes:
        """One change; ``now`` as for ``line``."""
        if isinstance(change, Undo) and change.receipt.token == 0:
            line = self._undo(change)
            if line is not None:
                return line
        lease, receipt = change.charge.lease, change.receipt
        late = (-1, 0) if lease is None else divmod(receipt.at + lease.ttl, 1000)
        return self.letter + self._change(change, late, now)

    def load(self, text: bytes, now: int) -> State | None:
        """A stored state as the core keeps it; ``now`` is the store's clock."""
        return self.limit.rule.load(tuple(map(int, text.split(b":"))))

    def dump(self, state: State) -> tuple[bytes, int]:
        """A core's state as it is stored, and from when on it may be forgotten (ns since 1970)."""
        rule = self.limit.rule
        return b":".join(b"%d" % number for number in rule.dump(state)), rule.expires_at(state)

    def _numbers(self, now: int) -> Sequence[int]:
        return ()

    def _rest(self, lease: Lease | None) -> bytes:
        return b""

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        raise NotImplementedError

    def _undo(self, change: Undo) -> bytes | None:
        """The line of an ``Undo``; None where giving back is the same."""
        return None

    def _head(self, change: Change, late: tuple[int, int], *, units: int | None = None) -> tuple[int, ...]:
        given = min(change.give_back, change.receipt.cost) if units is None else units
        return (*late, min(given, _MOST_UNITS), min(change.take, _MOST_UNITS), int(change.renew))


class GcraForm(Form):
    """``core.gcra`` (and its queue): ticks of 1/d µs.

    d is 1 where T is a whole number of µs, else d µs hold as many ticks as the core counts.
    """

    letter = b"g"

    def __init__(self, limit: Limit, rule: Gcra) -> None:
        super().__init__(limit)
        self.rule = rule
        whole = rule.scale == 1 and rule.interval % 1000 == 0
        self.d = 1 if whole else 1000 * rule.scale
        self._per_tick = 1000 * rule.scale // self.d  # the core's ticks per 1/d µs
        self._depth = self._pair(rule.depth)
        self.ones = None if limit.shadow else self.line(1, None, False, 0)

    def _pair(self, ticks: int) -> tuple[int, int]:
        return divmod(ticks // self._per_tick, self.d)

    def line(self, cost: int, lease: Lease | None, flexible: bool, now: int) -> bytes:
        """See ``Form.line``."""
        units = min(cost, self.burst + 1)
        step = self._pair(units * self.rule.interval)
        if units and lease is None and not flexible and not self.limit.shadow:
            return b"g" + _doubles(*step, *self._depth, self.d)
        flags = self.limit.shadow + 2 * flexible
        until = (-1, 0) if lease is None else divmod(lease.ttl, 1000)
        numbers = (units, self.burst, flags, *step, *self._depth, self.d, *self._pair(self.rule.interval), *until)
        return b"G" + _doubles(*numbers) + (b"" if lease is None else b"%d" % lease.token)

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        rule, receipt = self.rule, change.receipt
        longest = rule.depth + MAX_RECOVERY_NS * rule.scale  # as core.gcra.Gcra.take
        given = change.give_back if receipt.token == 0 else min(change.give_back, receipt.cost)
        most = (receipt.at + receipt.outcome.reset_after) * rule.scale  # as core.gcra.Gcra._charged
        least = most - rule.scale + 1
        numbers = (
            self.d,
            *self._depth,
            *self._pair(rule.interval),
            *self._pair(min(given * rule.interval, longest)),
            *self._pair(min(receipt.cost * rule.interval, longest)),
            *self._pair(-(-least // self._per_tick) * self._per_tick),
            *self._pair(most),
            *divmod(receipt.at, 1000),
            *self._pair(min(change.take * rule.interval, longest)),
            *self._pair(longest),
        )
        return _doubles(*self._head(change, late, units=given), *numbers) + b"%d" % receipt.token

    def _undo(self, change: Undo) -> bytes:
        rule, receipt = self.rule, change.receipt
        charged = receipt.cost * rule.interval
        base = (receipt.at + receipt.outcome.reset_after) * rule.scale - rule.scale + 1 - charged
        base = -(-base // self._per_tick) * self._per_tick
        before = change.before
        known = before[3:] if isinstance(before, tuple) and before[3:] and before[3] <= 0 else (0, 0, 0, 0)
        numbers = (
            self.d,
            *self._depth,
            *self._pair(rule.interval),
            *self._pair(charged),
            *self._pair(base),
            receipt.at // 1000,
            *self._pair(known[1]),
            *divmod(known[3], 1000),
        )
        return b"u" + _doubles(*self._head(change, (-1, 0)), *numbers)

    def load(self, text: bytes, now: int) -> State | None:
        """See ``Form.load``. Fractions that another quota wrote are rounded up to the next µs, as the scripts do."""
        if text[:1] == b"r":
            return self._load_open(text)
        if text.isdigit():
            ticks = int(text) * 1000 * self.rule.scale
        else:
            whole, part, d = map(int, text.split(b":"))
            ticks = self._ticks(whole, part, d)
        return ticks if self.rule.scale == 1 else (ticks, self.rule.scale)

    def _load_open(self, text: bytes) -> State:
        fields = text[1:].split(b":")
        whole, part, d, debt, debt_part = map(int, fields[:5])
        numbers = [self._ticks(whole, part, d), self.rule.scale, self._ticks(debt, debt_part, d)]
        for at in range(5, len(fields), 6):
            token, charged, charged_part, low, low_part, expires = fields[at : at + 6]
            given = token[:1] == b"g"
            numbers += [-int(token[1:]) if given else int(token)]
            numbers += [self._many(charged, charged_part, d, up=int(given)), self._many(low, low_part, d, up=0)]
            numbers += [int(expires)]
        return tuple(numbers)

    def _many(self, whole: bytes, part: bytes, d: int, *, up: int) -> int:
        return NOTHING_YET if whole == b"-" else self._ticks(int(whole), int(part), d, up=up)

    def _ticks(self, whole: int, part: int, d: int, *, up: int = 1) -> int:
        if d != self.d:
            whole, part = whole + (up if part else 0), 0
        return (whole * self.d + part) * self._per_tick

    def dump(self, state: State) -> tuple[bytes, int]:
        """See ``Form.dump``. Only for a state without open reservations, as ``scaled`` returns it."""
        ticks = self.rule.ticks(state)
        whole, part = divmod(-(-ticks // self._per_tick), self.d)
        if not isinstance(state, int) and len(state) == 7:
            text = b"r%020d:%d:%d:0:0:g%d:-:0:0:0:%d" % (whole, part, self.d, -state[3], state[6])
        else:
            text = b"%d" % whole if part == 0 else _doubles(whole, part, self.d)
        return text, self.rule.expires_at(state)


class WindowForm(Form):
    """``core.fixed_window``, aligned or anchored, and ``core.calendar_window``."""

    letter = b"w"

    def __init__(self, limit: Limit, rule: FixedWindow | CalendarWindow) -> None:
        super().__init__(limit)
        self.rule = rule
        self._known: tuple[int, int, tuple[int, ...]] = (0, 0, ())
        self._fixed = None if isinstance(rule, CalendarWindow) else (int(rule.anchored), *divmod(rule.period, 1000))

    def _numbers(self, now: int) -> Sequence[int]:
        return self._fixed or self._calendar(now)

    def _calendar(self, now: int) -> tuple[int, ...]:
        """Mode 2 and the boundaries of some windows around ``now``, in µs (they are whole seconds)."""
        rule = self.rule
        assert isinstance(rule, CalendarWindow)  # noqa: S101  # else the numbers are fixed
        first, last, numbers = self._known
        if not first <= now < last:
            start, end = rule.window(now)
            boundaries = [rule.window(start - 1)[0], start, end]
            for _ in range(_WINDOWS_AROUND - 2):
                boundaries.append(rule.window(boundaries[-1])[1])
            numbers = (2, 0, 0, *(boundary // 1000 for boundary in boundaries))
            self._known = start, end, numbers
        return numbers

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        mode, whole, part, *boundaries = self._numbers(now)
        receipt = change.receipt
        end = divmod(receipt.at + receipt.outcome.reset_after, 1000)
        return _doubles(*self._head(change, late), mode, whole, part, *end, *boundaries)


class SlidingWindowForm(Form):
    """``core.sliding_window``."""

    letter = b"s"

    def __init__(self, limit: Limit, rule: SlidingWindow) -> None:
        super().__init__(limit)
        self._period = divmod(rule.period, 1000)
        whole = self._period[1] == 0
        self._unit = 1 if whole else 1000
        self._in_unit = rule.period // 1000 if whole else rule.period
        if self._in_unit >= _EXACT:
            raise LimitError(
                f"limit {limit.name!r}: a sliding window of {rule.period} ns cannot be counted exactly in Redis; "
                f"expected a whole number of microseconds, or at most {_EXACT} ns (104 days)"
            )
        self.rule = rule

    def _numbers(self, now: int) -> Sequence[int]:
        return (*self._period, self._unit, self._in_unit)

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        period = self.rule.period
        end = divmod(change.receipt.at + change.receipt.outcome.reset_after - period, 1000)
        return _doubles(*self._head(change, late), *self._period, *end)


class SlidingLogForm(Form):
    """``core.sliding_log``."""

    letter = b"l"

    def __init__(self, limit: Limit, rule: SlidingLog) -> None:
        super().__init__(limit)
        self.rule = rule

    def _numbers(self, now: int) -> Sequence[int]:
        return divmod(self.rule.period, 1000)

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        receipt = change.receipt
        at = divmod(receipt.at + receipt.outcome.reset_after - self.rule.period, 1000)
        return _doubles(*self._head(change, late), *divmod(self.rule.period, 1000), *at)


class ConcurrencyForm(Form):
    """``core.concurrency``."""

    letter = b"c"

    def __init__(self, limit: Limit, rule: Concurrency) -> None:
        super().__init__(limit)
        self.rule = rule

    def _numbers(self, now: int) -> Sequence[int]:
        return divmod(self.rule.ttl, 1000)

    def _rest(self, lease: Lease | None) -> bytes:
        return b"0" if lease is None else b"%d" % lease.token

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        ttl, receipt = self.rule.ttl, change.receipt
        head = self._head(change, (-1, 0), units=change.give_back)
        return _doubles(*head, *divmod(ttl, 1000), *divmod(receipt.at + ttl, 1000)) + b"%d" % receipt.token


class GrowingWaitForm(Form):
    """``core.growing_wait``."""

    letter = b"a"

    def __init__(self, limit: Limit, rule: GrowingWait) -> None:
        super().__init__(limit)
        if rule.forgiven_after > MAX_RECOVERY_NS:
            raise LimitError(
                f"limit {limit.name!r}: forgiven_after is {rule.forgiven_after} ns; Redis counts exactly up to "
                f"{MAX_RECOVERY_NS} ns, 100 years of 365 days"
            )
        self.rule = rule

    def _numbers(self, now: int) -> Sequence[int]:
        rule = self.rule
        return (*divmod(rule.first, 1000), *divmod(rule.longest, 1000), *divmod(rule.forgiven_after, 1000))

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        at = divmod(change.receipt.at, 1000)
        return _doubles(*self._head(change, late), *divmod(self.rule.forgiven_after, 1000), *at)


class BlockForm(Form):
    """``core.block``: whatever state an earlier quota left says nothing."""

    letter = b"b"

    def load(self, text: bytes, now: int) -> State | None:
        """Nothing."""
        return None

    def _change(self, change: Change, late: tuple[int, int], now: int) -> bytes:
        return _doubles(*self._head(change, late))


def _form(limit: Limit) -> Form:
    match limit.rule:
        case Gcra() as rule:
            return GcraForm(limit, rule)
        case LeakyBucketQueue(gcra=rule):
            return GcraForm(limit, rule)
        case FixedWindow() | CalendarWindow() as rule:
            return WindowForm(limit, rule)
        case SlidingWindow() as rule:
            return SlidingWindowForm(limit, rule)
        case SlidingLog() as rule:
            return SlidingLogForm(limit, rule)
        case Concurrency() as rule:
            return ConcurrencyForm(limit, rule)
        case GrowingWait() as rule:
            return GrowingWaitForm(limit, rule)
        case Block():
            return BlockForm(limit)
        case rule:
            raise LimitError(f"limit {limit.name!r}: {type(rule).__name__} has no translation for Redis")


def _doubles(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)
