"""Replay a log through policies: one, or today's and a proposed one, beside the log's own refusals and obedient callers.

Decided by the limiter that decides live, on the log's clock: the latest time seen. Memory grows with the keys, and with
``--obedient keep`` with the requests that wait, not with the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from headway.analysis.access_log import request_matcher
from headway.analysis.logs.block import Block, Fault
from headway.analysis.replay.fields import MADE_OF, Mapped, values_of
from headway.analysis.replay.limits import SideReplay, shown_key
from headway.analysis.replay.obedient import Obedient
from headway.analysis.replay.report import Compared, ObedientReplay, PolicyReplay, Statuses
from headway.analysis.replay.series import Timeline
from headway.analysis.replay.side import Ruling, Side
from headway.core.key import Key
from headway.core.quota import SECOND
from headway.policy.choice import limits_of
from headway.policy.policy import Policy

__all__ = ["Asked", "fields_of", "replay_policy"]

_SHOWN_FAULTS: Final = 3
_MINUTE: Final = 60 * SECOND
_NEW_REFUSED: Final = "newly_refused"
_NEW_ADMITTED: Final = "newly_admitted"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a replay is to find out.

    Attributes:
        policy: today's, or the only one.
        source: the file it is from, or what else says where.
        mapped: how its attributes (and those of ``against``) come out of the log.
        against: a proposed policy.
        against_source: see ``source``.
        match: which requests to decide; see ``request_matcher``.
        behind: a field whose different values are counted behind each key.
        caller: the fields that say who a caller is, the first that a request has: for ``obedient``, and for limits
            without a key, of which it is said whom they refused.
        obedient: "keep" or "drop"; None simulates nobody.
        refused_status: status codes that are refusals in the log.
        step: of the timeline, ns.
        top: how many keys to list.
    """

    policy: Policy
    source: str
    mapped: Mapped
    against: Policy | None = None
    against_source: str = ""
    match: str | None = None
    behind: str | None = None
    caller: tuple[str, ...] = ("address",)
    obedient: str | None = None
    refused_status: frozenset[int] = frozenset({429})
    step: int = _MINUTE
    top: int = 5


def fields_of(asked: Asked) -> frozenset[str]:
    """The fields that have to be read of a log."""
    return asked.mapped.needs | {
        "status",
        *(("method", "path") if asked.match is not None else ()),
        *(MADE_OF.get(field, field) for field in ((asked.behind,) if asked.behind else ())),
        *(MADE_OF.get(field, field) for field in (asked.caller if _asks_callers(asked) else ())),
    }


def replay_policy(
    blocks: Iterable[Block],
    asked: Asked,
    *,
    progress: Callable[[int], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> PolicyReplay:
    """Put the requests of a log to a policy, or to two.

    Args:
        blocks: what ``read_logs`` reads, with ``fields_of(asked)``.
        asked: what to find out.
        progress: called with the number of lines so far, after each block.
        stopped: asked before each block; True ends the replay, and what it says is then partial.

    Raises:
        ValueError: ``asked.match`` cannot be; and what ``blocks`` raises.
    """
    run = _Run(asked)
    partial = False
    for block in blocks:
        if stopped is not None and stopped():
            partial = True
            break
        run.take(block)
        if progress is not None:
            progress(run.lines)
    return run.replayed(partial=partial or bool(stopped and stopped()))


@dataclass(slots=True)
class _Change:
    """What two sides said differently."""

    both_admitted: int = 0
    both_refused: int = 0
    incomparable: int = 0
    keys: Counter[tuple[str, str, Key]] = field(default_factory=Counter)

    def note(self, today: Ruling | None, proposed: Ruling | None) -> None:
        if today is None or proposed is None:
            self.incomparable += today is not proposed
        elif today.allowed == proposed.allowed:
            self.both_admitted += today.allowed
            self.both_refused += not today.allowed
        else:
            kind, refusing = (_NEW_REFUSED, proposed) if today.allowed else (_NEW_ADMITTED, today)
            if refusing.limit is not None and refusing.key is not None:
                self.keys[kind, refusing.limit, refusing.key] += 1


class _Run:
    """A replay under way."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.today = Side(asked.policy)
        self.proposed = Side(asked.against) if asked.against is not None else None
        self.obedient = Obedient(asked.policy, asked.obedient) if asked.obedient else None
        kinds = ("requests", "refused", "refused_in_log", *(("refused_against",) if self.proposed else ()))
        self.timeline = Timeline(asked.step, kinds)
        self.change = _Change()
        self.statuses = [0, 0, 0, 0]  # by twice whether the log refused, and whether the policy admits
        self.unknown_status = 0
        self.lines = self.unparsed = self.out_of_order = 0
        self.first: int | None = None
        self.latest: int | None = None
        self.faults: list[Fault] = []
        self._wanted = _matcher(asked.match)
        self._asks_callers = _asks_callers(asked)

    def take(self, block: Block) -> None:
        """Decide a block's requests."""
        self.lines += block.lines
        self.unparsed += len(block.faults)
        self.faults += block.faults[: _SHOWN_FAULTS - len(self.faults)] if len(self.faults) < _SHOWN_FAULTS else ()
        asked, columns = self.asked, block.columns
        today, proposed, obedient, timeline = self.today, self.proposed, self.obedient, self.timeline
        change, refusals = self.change, asked.refused_status
        statuses = self.statuses
        behind = values_of(block, asked.behind) if asked.behind else None
        wanted = None if self._wanted is None else self._wanted(columns)
        callers = _callers(block, asked.caller) if self._asks_callers else None
        latest, dated, counts = self.latest, -1, [0]
        status_of = columns["status"]
        for row, (now, attributes) in enumerate(zip(columns["time"], asked.mapped.rows(block), strict=True)):
            if latest is None:
                self.first = latest = now
            elif now < latest:
                self.out_of_order += 1
            else:
                latest = now
            if wanted is not None and not wanted[row]:
                continue
            seen = None if behind is None else str(behind[row]) if behind[row] is not None else "-"
            caller = None if callers is None else callers[row]
            ruling = today.decide(attributes, latest, seen, caller)
            other = None if proposed is None else proposed.decide(attributes, latest, seen, caller)
            if proposed is not None:
                change.note(ruling, other)
            if ruling is None:
                continue
            status = status_of[row]
            refused_in_log = status in refusals
            if status is None:
                self.unknown_status += 1
            else:
                statuses[2 * refused_in_log + ruling.allowed] += 1
            if latest != dated:  # most lines share the second of the one before
                counts, dated = timeline.at(latest), latest
            counts[0] += 1
            if not ruling.allowed:
                counts[1] += 1
            if refused_in_log:
                counts[2] += 1
            if other is not None and not other.allowed:
                counts[3] += 1
            if obedient is not None and caller is not None:
                obedient.arrive(caller, attributes, latest)
        self.latest = latest

    def replayed(self, *, partial: bool) -> PolicyReplay:
        """Everything so far."""
        asked, behind, secrets = self.asked, self.asked.behind is not None, self.asked.mapped.secrets
        if self.obedient is not None and not partial:
            self.obedient.finish()
        against = None
        if self.proposed is not None:
            against = SideReplay.of(self.proposed, asked.against_source, asked.top, behind=behind, secrets=secrets)
        return PolicyReplay(
            partial,
            self.lines,
            self.unparsed,
            self.out_of_order,
            self.first,
            self.latest,
            SideReplay.of(self.today, asked.source, asked.top, behind=behind, secrets=secrets),
            against,
            self._compared() if self.proposed else None,
            self._statuses(),
            ObedientReplay.of(self.obedient) if self.obedient else None,
            self.timeline,
            tuple(self.faults),
        )

    def _statuses(self) -> Statuses | None:
        only_policy, neither, both, only_log = self.statuses
        if not any(self.statuses):
            return None
        codes = tuple(sorted(self.asked.refused_status))
        return Statuses(codes, both, neither, only_log, only_policy, self.unknown_status)

    def _compared(self) -> Compared:
        change = self.change
        by = {
            kind: {part.name: limits_of(part)[0].by for part in side.policy.limits}
            for kind, side in ((_NEW_REFUSED, self.proposed), (_NEW_ADMITTED, self.today))
            if side is not None
        }
        by_limit: Counter[tuple[str, str]] = Counter()
        whole: Counter[str] = Counter()
        keys: Counter[str] = Counter()
        for (kind, limit, _), requests in change.keys.items():
            by_limit[kind, limit] += requests
            whole[kind] += requests
            keys[kind] += 1
        top = [
            (kind, limit, by[kind][limit], shown_key(by[kind][limit], key, self.asked.mapped.secrets), requests)
            for wanted in (_NEW_REFUSED, _NEW_ADMITTED)
            for (kind, limit, key), requests in Counter(
                {item: n for item, n in change.keys.items() if item[0] == wanted}
            ).most_common(self.asked.top)
        ]
        return Compared(
            change.both_admitted,
            change.both_refused,
            whole[_NEW_REFUSED],
            whole[_NEW_ADMITTED],
            change.incomparable,
            tuple((kind, limit, requests) for (kind, limit), requests in by_limit.most_common()),
            tuple(top),
            keys[_NEW_REFUSED],
            keys[_NEW_ADMITTED],
        )


def _asks_callers(asked: Asked) -> bool:
    policies = (asked.policy, *((asked.against,) if asked.against is not None else ()))
    return bool(asked.obedient) or any(not limits_of(part)[0].by for policy in policies for part in policy.limits)


def _matcher(match: str | None) -> Callable[[dict[str, list[str | None]]], list[bool]] | None:
    """From a block's columns to whether each request is wanted; None where all are."""
    if match is None:
        return None
    matches = request_matcher(match)

    @lru_cache(maxsize=4096)
    def wanted(method: str | None, path: str | None) -> bool:
        if path is None:
            return False
        return matches(f"{method or '-'} {path}".encode("utf-8", "backslashreplace"))

    return lambda columns: [wanted(m, p) for m, p in zip(columns["method"], columns["path"], strict=True)]


def _callers(block: Block, fields: Collection[str]) -> list[Key]:
    """Who sent each request: the first of the fields that it has, and which that is."""
    rows: Iterator[tuple[str | int | None, ...]] = zip(*(values_of(block, field) for field in fields), strict=True)
    return [
        next(((name, str(value)) for name, value in zip(fields, row, strict=True) if value is not None), ())
        for row in rows
    ]
