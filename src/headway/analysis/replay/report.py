"""What came of a replay of policies, as values: two side by side, the log's own refusals, obedient callers, over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from headway.analysis.logs.block import Fault
from headway.analysis.replay.limits import SideReplay, maybe_instant, say_instant
from headway.analysis.replay.obedient import Obedient
from headway.analysis.replay.series import Timeline

__all__ = ["Compared", "ObedientReplay", "PolicyReplay", "Statuses"]

_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Compared:
    """Two policies on the same requests.

    Attributes:
        both_admitted: requests that both let pass.
        both_refused: requests that both refuse.
        newly_refused: requests that only the proposed one refuses.
        newly_admitted: requests that only today's refuses.
        incomparable: requests that one of them could not decide.
        by_limit: (side, limit, requests): newly refused ones by the proposed limit that refuses them, newly admitted ones
            by today's that refused them; most first. The side is "newly_refused" or "newly_admitted".
        by_key: (side, limit, by, key, requests): the same by key; the most first.
        keys_newly_refused: different limits' keys among the newly refused.
        keys_newly_admitted: different limits' keys among the newly admitted.
    """

    both_admitted: int
    both_refused: int
    newly_refused: int
    newly_admitted: int
    incomparable: int
    by_limit: tuple[tuple[str, str, int], ...]
    by_key: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], int], ...]
    keys_newly_refused: int
    keys_newly_admitted: int

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able values."""
        return {
            "both_admitted": self.both_admitted,
            "both_refused": self.both_refused,
            "newly_refused": self.newly_refused,
            "newly_admitted": self.newly_admitted,
            "incomparable": self.incomparable,
            "keys_newly_refused": self.keys_newly_refused,
            "keys_newly_admitted": self.keys_newly_admitted,
            "by_limit": [{"change": side, "limit": limit, "requests": n} for side, limit, n in self.by_limit],
            "by_key": [
                {"change": side, "limit": limit, "key": dict(zip(by, key, strict=True)), "requests": n}
                for side, limit, by, key, n in self.by_key
            ],
        }


@dataclass(frozen=True, slots=True)
class Statuses:
    """What really happened, by the log's status codes, against what the policy says.

    Attributes:
        codes: the codes that are taken for a refusal.
        both: requests that the log shows as refused and the policy refuses.
        neither: requests that neither refused.
        only_log: requests that only the log shows as refused.
        only_policy: requests that only the policy refuses.
        unknown: requests without a status.
    """

    codes: tuple[int, ...]
    both: int
    neither: int
    only_log: int
    only_policy: int
    unknown: int

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able values."""
        return {name: list(self.codes) if name == "codes" else getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class ObedientReplay:
    """The same requests from callers who come back when they are told to; times in ns.

    Attributes:
        mode: "keep" or "drop": what became of a waiting caller's later requests.
        requests: pieces of work.
        at_once: how many passed when they came.
        later: how many passed later.
        later_median: by how much, half of those (rounded up by at most a sixteenth).
        later_most: by how much, at most.
        later_mean: by how much, on average.
        refusals: how many refusals were met.
        dropped: requests taken for the same work tried again.
        given_up: requests that no wait helps.
        waiting: requests that had not passed when the replay ended or was cut.
        ended: when the last work passed, ns since 1970; None where none did.
        cut: callers came back so often that the simulation was stopped.
    """

    mode: str
    requests: int
    at_once: int
    later: int
    later_median: int
    later_most: int
    later_mean: int
    refusals: int
    dropped: int
    given_up: int
    waiting: int
    ended: int | None
    cut: bool

    @classmethod
    def of(cls, model: Obedient) -> ObedientReplay:
        """What a simulation comes to."""
        later = model.later
        return cls(
            model.mode,
            model.requests,
            model.at_once,
            later.count,
            later.quantile(0.5),
            later.most,
            later.whole // later.count if later.count else 0,
            model.refusals,
            model.dropped,
            model.given_up,
            model.waiting,
            model.ended or None,
            model.cut,
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able values; times in seconds."""
        return {
            "mode": self.mode,
            "requests": self.requests,
            "at_once": self.at_once,
            "later": self.later,
            "later_median_s": self.later_median / _SECOND,
            "later_mean_s": self.later_mean / _SECOND,
            "later_most_s": self.later_most / _SECOND,
            "refusals": self.refusals,
            "dropped": self.dropped,
            "given_up": self.given_up,
            "waiting": self.waiting,
            "ended": maybe_instant(self.ended),
            "cut": self.cut,
        }


@dataclass(frozen=True, slots=True)
class PolicyReplay:
    """What came of a log under one policy or two.

    Attributes:
        partial: it was stopped; everything is of the lines until then.
        lines: all lines that were read.
        unparsed: lines that could not be read.
        out_of_order: requests with an earlier time than one before them, decided at the latest time before.
        first: the first request's time, ns since 1970; None without requests.
        last: the latest.
        today: what the policy would have refused.
        against: what the other one would have.
        compared: both, side by side.
        statuses: the log's own refusals; None where it has no status codes.
        obedient: see ``ObedientReplay``.
        timeline: requests and refusals over time.
        faults: the first three lines that could not be read.
    """

    partial: bool
    lines: int
    unparsed: int
    out_of_order: int
    first: int | None
    last: int | None
    today: SideReplay
    against: SideReplay | None
    compared: Compared | None
    statuses: Statuses | None
    obedient: ObedientReplay | None
    timeline: Timeline
    faults: tuple[Fault, ...]

    def to_dict(self, *, series: bool) -> dict[str, Any]:
        """The same as JSON-able values.

        Args:
            series: with the timeline.
        """
        rows = [[say_instant(start), *counts] for start, counts in self.timeline.rows()] if series else []
        return {
            "partial": self.partial,
            "lines": self.lines,
            "unparsed": self.unparsed,
            "out_of_order": self.out_of_order,
            "first": maybe_instant(self.first),
            "last": maybe_instant(self.last),
            **self.today.to_dict(),
            **({"against": self.against.to_dict()} if self.against else {}),
            **({"compared": self.compared.to_dict()} if self.compared else {}),
            **({"statuses": self.statuses.to_dict()} if self.statuses else {}),
            **({"obedient": self.obedient.to_dict()} if self.obedient else {}),
            **(
                {
                    "series": {
                        "step_s": self.timeline.step / _SECOND,
                        "columns": ["time", *self.timeline.kinds],
                        "rows": rows,
                    }
                }
                if series
                else {}
            ),
        }
