"""Access logs: refusals as their status shows them, and clients that do not wait. A log holds no fields and no bodies.

Memory grows with the number of addresses that were refused, up to a bound; the oldest are forgotten first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from headway.analysis.figures import counted
from headway.analysis.lint.answer import Place
from headway.analysis.lint.audit import Graded, Report
from headway.analysis.lint.finding import Finding
from headway.analysis.lint.marks import BEST, Mark

__all__ = ["LogAudit", "Request"]

_SECOND: Final = 1_000_000_000
_BURST: Final = 5
"""Refusals of one client within a minute, on pages that it is served before and after, look like a limit."""
_WITHIN: Final = 60 * _SECOND
_AT_ONCE: Final = 1 * _SECOND
_MOST: Final = 100_000
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a log: when (ns since 1970), from where, what for, and the status of its answer."""

    at: int
    address: str
    path: str
    status: int


@dataclass(slots=True)
class _Client:
    """What is remembered of one address."""

    served: set[str] = field(default_factory=set)
    refused: dict[int, list[int]] = field(default_factory=dict)
    pages: dict[int, set[str]] = field(default_factory=dict)
    at_once: int = 0
    limited: int = 0
    last_limited: int | None = None
    bursts: Counter[int] = field(default_factory=Counter)
    open_bursts: set[int] = field(default_factory=set)


class LogAudit:
    """Takes a log's requests in order, and reports in the end.

    Args:
        file: what to call the log.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._statuses: Counter[int] = Counter()
        self._last_served: OrderedDict[str, int] = OrderedDict()
        self._requests = 0

    def add(self, requests: Iterable[Request]) -> None:
        """Take some more requests."""
        for request in requests:
            self._requests += 1
            self._statuses[request.status] += 1
            self._take(request)

    def _take(self, request: Request) -> None:
        client = self._clients.get(request.address)
        if client is None:
            client = self._clients[request.address] = _Client()
            if len(self._clients) > _MOST:
                self._clients.popitem(last=False)
        else:
            self._clients.move_to_end(request.address)
        status = request.status
        if status < 400:
            self._serve(request, client)
        elif status == 429:
            if client.last_limited is not None and request.at - client.last_limited < _AT_ONCE:
                client.at_once += 1
            client.limited += 1
            client.last_limited = request.at
        elif status in (403, 503):
            if status == 503 and not self._others_are_served(request):
                return  # nobody is served: it is down
            times = client.refused.setdefault(status, [])
            if times and request.at - times[-1] > _WITHIN:
                times.clear()
                client.pages.pop(status, None)
            times.append(request.at)
            del times[:-_BURST]
            client.pages.setdefault(status, set()).add(request.path)
            within = len(times) == _BURST and times[-1] - times[0] <= _WITHIN
            if within and client.pages[status] & client.served:
                client.open_bursts.add(status)

    def _serve(self, request: Request, client: _Client) -> None:
        self._last_served[request.address] = request.at
        self._last_served.move_to_end(request.address)
        if len(self._last_served) > 2:
            self._last_served.popitem(last=False)
        for status in client.open_bursts:
            if request.path in client.pages.get(status, ()):  # served again: time has lifted it
                client.bursts[status] += 1
                client.refused.pop(status, None)
                client.pages.pop(status, None)
        client.open_bursts = {status for status in client.open_bursts if status in client.refused}
        if len(client.served) < 200:
            client.served.add(request.path)

    def _others_are_served(self, request: Request) -> bool:
        return any(
            address != request.address and request.at - at <= _WITHIN for address, at in self._last_served.items()
        )

    def report(self, *, unread: int = 0, stopped: bool = False) -> Report:
        """What was found.

        Args:
            unread: lines that are no requests.
            stopped: not all was read.
        """
        findings = [
            *self._finding("log-refused-without-pause", self._impatient(), "429s within a second of the one before"),
            *self._finding("log-forbidden-burst", self._bursting(403), "bursts of 403, and served again"),
            *self._finding("log-unavailable-burst", self._bursting(503), "bursts of 503 while others were served"),
        ]
        limited = self._statuses[429]
        suspicious = {status: sum(self._bursting(status).values()) for status in (403, 503)}
        marks = (self._status_mark(limited, suspicious), *(_unknown(name) for name in ("reason", "wait", "limits")))
        graded = (Graded(Place(self._file), "log", None, marks),) if limited or any(suspicious.values()) else ()
        limited_ones = ", ".join(f"{self._statuses[status]:,} of them {status}" for status in (429, 403, 503))
        looked_at = f"an access log of {counted(self._requests, 'request')}, {limited_ones}"
        looked_at += f"; {counted(unread, 'line')} could not be read" if unread else ""
        looked_at += "; stopped before its end, so this is a part" if stopped else ""
        return Report(self._file, looked_at, graded, tuple(findings), stopped=stopped)

    def _status_mark(self, limited: int, suspicious: dict[int, int]) -> Mark:
        wrong = sum(suspicious.values())
        shown = ", ".join(f"{counted(count, 'burst')} of {status}" for status, count in suspicious.items() if count)
        if not wrong:
            return Mark(
                "status",
                BEST if limited else None,
                f"{counted(limited, 'refusal')} with 429, none that looks like another's",
            )
        return Mark(
            "status",
            2 if limited else 1,
            f"{counted(limited, 'refusal')} with 429; {shown} look{'s' if wrong == 1 else ''} like a limit too",
        )

    def _impatient(self) -> Counter[str]:
        return Counter(
            {
                address: client.at_once
                for address, client in self._clients.items()
                if client.at_once >= _BURST and client.at_once * 2 >= client.limited
            }
        )

    def _bursting(self, status: int) -> Counter[str]:
        return Counter(
            {address: client.bursts[status] for address, client in self._clients.items() if client.bursts[status]}
        )

    def _finding(self, rule: str, found: Counter[str], what: str) -> list[Finding]:
        if not found:
            return []
        most = ", ".join(f"{address} {count}" for address, count in found.most_common(_SHOWN))
        clients = counted(len(found), "client")
        return [Finding(rule, f"{what}: {sum(found.values())} of {clients}, most of them {most}", Place(self._file))]


def _unknown(name: str) -> Mark:
    return Mark(name, None, "a log does not show it")
