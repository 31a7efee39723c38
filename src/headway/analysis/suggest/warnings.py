"""Why not to trust a suggestion too far: short or small samples, a limit that was on already, a proxy's address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Protocol

from headway.analysis.explain import say_duration
from headway.analysis.figures import counted
from headway.analysis.suggest.percentiles import Histogram
from headway.core.quota import DAY, HOUR, SECOND

__all__ = ["warnings_about"]

_FEW_CLIENTS = 100
_FEW_WINDOWS = 1000
_WEEK = 7 * DAY


class _Traffic(Protocol):
    def refused_by_server(self) -> int: ...
    def keyless(self) -> int: ...
    def whole_seconds(self) -> bool: ...
    def busiest_client(self) -> tuple[str, int, int]: ...


def warnings_about(
    traffic: _Traffic,
    span: tuple[int, int] | None,
    requests: int,
    clients: int,
    windows: Mapping[str, Histogram],
    show: Callable[[str], str],
) -> list[str]:
    """One sentence for each reason.

    Args:
        traffic: what is asked.
        span: times of the first and the last request, ns since 1970.
        requests: how many, at least 1.
        clients: how many.
        windows: the clients' by name.
        show: how a client's key is shown.
    """
    found = []
    length = 0 if span is None else span[1] - span[0]
    said = say_duration(Fraction(length // SECOND)) if length >= SECOND else "less than a second"
    if length < HOUR:
        found.append(f"only {said} of traffic: nothing is known of longer windows, nor of other times of the day")
    elif length < DAY:
        found.append(f"only {said} of traffic: less than a day, so its quiet and its busiest hours may be missing")
    elif length < _WEEK:
        found.append(f"{said} of traffic: less than a week, so other days may be busier")
    if clients < _FEW_CLIENTS:
        found.append(f"only {counted(clients, 'client')}: the next one may behave in another way")
    few = [name for name, histogram in windows.items() if histogram.whole < _FEW_WINDOWS]
    if few:
        found.append(f"fewer than {_FEW_WINDOWS:,} windows of {', '.join(few)}: p99.9 is the maximum there")
    refused = traffic.refused_by_server()
    if refused:
        found.append(
            f"{counted(refused, 'request')} {'was' if refused == 1 else 'were'} answered with 429: a limit was on already, and clients that honour it sent less "
            "than they would have"
        )
    keyless = traffic.keyless()
    if keyless:
        found.append(
            f"{counted(keyless, 'request')} {'has' if keyless == 1 else 'have'} none of the keys that make a client, and "
            "count as one client, called -"
        )
    name, most, agents = traffic.busiest_client()
    if clients > 1 and most * 2 > requests and agents >= 20:
        found.append(
            f"{most / requests:.0%} of all requests come from {show(name)} with {agents} agents: perhaps a proxy's address; let "
            "the server log its client's instead"
        )
    if traffic.whole_seconds() and requests > 1:
        found.append(
            "the log's times are whole seconds: requests of one second count as simultaneous, and waits are right to a second"
        )
    return found
