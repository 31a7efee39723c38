"""A suggestion as a report: the proposals first, then whom they refuse, then the traffic they come from."""

from __future__ import annotations

from fractions import Fraction

from headway.analysis.explain import say_duration
from headway.analysis.figures import Axis, Cell, Chart, Kind, Mark, Report, Scale, Section, Series, Table, counted
from headway.analysis.suggest.as_json import said_time
from headway.analysis.suggest.percentiles import PERCENTILES, WINDOWS, Histogram
from headway.analysis.suggest.proposals import Proposal
from headway.analysis.suggest.suggestion import Distribution, Suggestion
from headway.core.quota import MINUTE, SECOND

__all__ = ["report_of"]

_SAID = {"client": "a client", "everyone": "everyone together", "network": "an address or IPv6 /64", "address": "an address", "user": "a user", "api_key": "an API key"}  # fmt: skip
_PLURAL = {
    "client": ("client", "clients"),
    "network": ("address or IPv6 /64", "addresses and IPv6 /64s"),
    "address": ("address", "addresses"),
    "user": ("user", "users"),
    "api_key": ("API key", "API keys"),
}


def report_of(found: Suggestion, *, most: int = 10, made_by: str = "") -> Report:
    """The report.

    Args:
        found: the suggestion.
        most: how many clients of each proposal and kind to list.
        made_by: the command line.
    """
    return Report(
        "Limits for this traffic",
        (_counted(found), *(f"Careful: {warning}." for warning in found.warnings)),
        tuple(section for section in _sections(found, most) if section.paragraphs or section.charts or section.tables),
        found.partial,
        made_by,
    )


def _each(found: Suggestion) -> str:
    """What a client is, in words: an address is meant by its /64 where it is IPv6 and networks are clients."""
    words = {"api_key": "API key", "network": "address or IPv6 /64" if found.by == "network" else "address"}
    return " or ".join(words.get(key, key) for key in found.by.split("_or_"))


def _counted(found: Suggestion) -> str:
    if not found.requests:
        return f"{counted(found.lines, 'line')}, no requests."
    said = f"{counted(found.requests, 'request')} of {counted(found.clients, 'client')} (by {_each(found)})"
    if found.span:
        said += f", {said_time(found.span[0])} to {said_time(found.span[1])}"
    return (
        said
        + (f"; {found.unparsed:,} of {counted(found.lines, 'line')} could not be read" if found.unparsed else "")
        + "."
    )


def _sections(found: Suggestion, most: int) -> list[Section]:
    proposals = Section(
        "Proposed limits",
        tuple(f"{proposal.goal}: {_said(proposal, found)}" for proposal in found.proposals),
        tables=(_proposed(found),) if found.proposals else (),
    )
    refused = Section(
        "Whom they would have refused",
        tables=tuple(_refused(proposal, found, most) for proposal in found.proposals if proposal.trial.clients),
    )
    traffic = Section(
        "How clients send",
        charts=(_curve(found),) if found.distributions else (),
        tables=(
            *((_distributions(found),) if found.distributions else ()),
            *((_smallest(found),) if found.smallest else ()),
            *((_routes(found),) if found.routes else ()),
        ),
    )
    kinds = Section(
        "Who the clients are",
        tables=(
            *((_kinds(found),) if found.kinds else ()),
            *((_shared(found),) if found.shared_addresses else ()),
            *(_examples(found, most),) * any(kind.examples[0].evidence for kind in found.kinds if kind.examples),
        ),
    )
    return [proposals, refused, traffic, kinds]


def _said(proposal: Proposal, found: Suggestion) -> str:
    limits = " and ".join(
        f"{limit.quota} {'for each ' + _each(found) if limit.by else 'for everyone together'}"
        for limit in proposal.limits(found.by)
    )
    trial = proposal.trial
    if not trial.refused:
        said = f"{limits} would have refused nobody"
    else:
        said = (
            f"{limits} would have refused {trial.refused:,} of {counted(found.requests, 'request')} "
            f"({trial.refused / found.requests:.2%}), of {counted(len(trial.clients), 'client')}, with waits of up to "
            f"{say_duration(Fraction(trial.longest, SECOND))}"
        )
    if proposal.tight is not None:
        said += f"; without room for more than was seen it would be {proposal.tight}"
    return "; ".join([said, *proposal.notes]) + "."


def _proposed(found: Suggestion) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for proposal in found.proposals:
        trial = proposal.trial
        for limit, refused in zip(proposal.limits(found.by), trial.by_limit, strict=True):
            rows.append(
                (
                    str(proposal.goal),
                    str(limit.quota),
                    _each(found) if limit.by else "everyone",
                    limit.algorithm.value,
                    refused,
                    len(trial.clients),
                    trial.wait(Fraction(1, 2)) / 1000 if trial.refused else None,
                    trial.longest / SECOND if trial.refused else None,
                )
            )
    return Table(
        "What each would have done",
        ("goal", "quota", "for each", "algorithm", "refused", "clients", "wait p50 (s)", "wait max (s)"),
        tuple(rows),
    )


def _refused(proposal: Proposal, found: Suggestion, most: int) -> Table:
    clients = proposal.trial.clients
    rows = tuple(
        (
            (named := found.named[client.client]).client,
            named.kind.value,
            named.facts.wanted,
            client.refused,
            client.longest / SECOND,
            named.facts.agents,
            "; ".join(named.evidence) or None,
        )
        for client in clients[:most]
        if client.client in found.named
    )
    note = f"And {counted(len(clients) - len(rows), 'more client')}." if len(clients) > len(rows) else ""
    return Table(
        f"Refused by {proposal.goal}",
        ("client", "kind", "requests", "refused", "longest wait (s)", "agents", "why that kind"),
        rows,
        note,
    )


def _distributions(found: Suggestion) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for distribution in found.distributions:
        for name, histogram in distribution.windows.items():
            rows.append((_SAID[distribution.key], name, *_cells(histogram)))
    keys = ", ".join(
        f"{one.keys:,} {_PLURAL[one.key][one.keys != 1]}" for one in found.distributions if one.key in _PLURAL
    )
    return Table(
        "Requests in a window",
        ("of", "window", "not empty", *(name for name, _ in PERCENTILES), "max"),
        tuple(rows),
        f"Percentiles by nearest rank over the windows, aligned to the clock, that are not empty. {keys}.",
    )


def _cells(histogram: Histogram) -> tuple[Cell, ...]:
    return (histogram.whole, *(histogram.rank(share) for _, share in PERCENTILES), histogram.most)


def _smallest(found: Suggestion) -> Table:
    return Table(
        "The smallest limit that refuses nobody at all",
        ("per", "token bucket, GCRA", "fixed window", "sliding log"),
        tuple(
            (name, values["gcra"], values["fixed-window"], values["sliding-log"])
            for name, values in found.smallest.items()
        ),
    )


def _routes(found: Suggestion) -> Table:
    return Table(
        "The busiest routes: a client's requests in a minute",
        ("route", "requests", "clients", *(name for name, _ in PERCENTILES), "max"),
        tuple((route.key, route.requests, route.keys, *_cells(route.windows["60s"])[1:]) for route in found.routes),
    )


def _kinds(found: Suggestion) -> Table:
    whole = sum(kind.requests for kind in found.kinds)
    return Table(
        "Kinds of clients",
        ("kind", "clients", "requests", "share of requests (%)"),
        tuple(
            (kind.kind.value, kind.clients, kind.requests, round(100 * kind.requests / whole, 2))
            for kind in found.kinds
        ),
    )


def _shared(found: Suggestion) -> Table:
    return Table(
        "Addresses that many share",
        ("address", "requests", "users", "API keys"),
        tuple(tuple(shared) for shared in found.shared_addresses),
        "A limit by address would count these people as one.",
    )


def _examples(found: Suggestion, most: int) -> Table:
    return Table(
        "Clients that are not like the others",
        ("client", "kind", "requests", "busiest minute", "why"),
        tuple(
            (
                named.client,
                named.kind.value,
                named.facts.requests,
                named.facts.busiest_minute,
                "; ".join(named.evidence),
            )
            for kind in found.kinds
            for named in kind.examples[:most]
            if named.evidence
        ),
        "An agent can lie: what it says is evidence, not proof.",
    )


def _curve(found: Suggestion) -> Chart:
    """How many of a client's windows have so many requests or more, and what the proposed limits admit in a minute."""
    clients = found.distributions[0]
    marks: dict[int, str] = {}
    for proposal in found.proposals:
        if proposal.each is not None:
            most = proposal.each.most_in(MINUTE)
            text = f"{proposal.each}: at most {most} a minute"
            marks[most] = f"{marks[most]}; {text}" if most in marks and text not in marks[most] else text
    return Chart(
        "Requests of a client in a window",
        Axis("requests", scale=Scale.LOG),
        Axis("windows with so many or more", "%", Scale.LOG),
        tuple(Series(name, _tail(clients, name), Kind.STEPS) for name, _ in WINDOWS),
        tuple(Mark(most, text, "x") for most, text in sorted(marks.items())),
        "Of all windows in which a client sent something, how many have at least so many requests; lines across are the most "
        "that the proposed limits admit in a minute.",
    )


def _tail(distribution: Distribution, name: str) -> tuple[tuple[float, float], ...]:
    histogram = distribution.windows[name]
    left = histogram.whole
    points = []
    for value, count in histogram.pairs:
        points.append((float(value), 100 * left / histogram.whole))
        left -= count
    if len(points) > 400:  # as many as can be seen
        points = [*points[:200], *points[200 : -1 : -(-(len(points) - 200) // 200)], points[-1]]
    return tuple(points)
