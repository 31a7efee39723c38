"""A replay as a report for people: the answer in words, tables by limit and by key, refusals over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from headway.analysis.explain import say_duration
from headway.analysis.figures import Axis, Cell, Chart, Kind, Report, Scale, Section, Series, Table, counted, say_time
from headway.analysis.replay.limits import LimitReplay, SideReplay
from headway.analysis.replay.obedient import KEEP
from headway.analysis.replay.report import Compared, ObedientReplay, PolicyReplay, Statuses
from headway.analysis.replay.series import Timeline

__all__ = ["replay_report", "sparkline"]

_SECOND: Final = 1_000_000_000
_MOST_BARS: Final = 120
_MOST_ROWS: Final = 60
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_EVERYONE: Final = "everyone"
_KINDS: Final = {
    "refused": "by the policy",
    "refused_in_log": "in the log",
    "refused_against": "by the proposed policy",
}
_CHANGES: Final = {"newly_refused": "newly refused", "newly_admitted": "newly admitted"}


def replay_report(
    replay: PolicyReplay, logs: str, *, series: bool, behind: str | None = None, made_by: str = ""
) -> Report:
    """The report.

    Args:
        replay: what came of it.
        logs: what the log is called.
        series: with a table of the timeline.
        behind: the field that was counted behind each key.
        made_by: the command line.
    """
    today, against = replay.today, replay.against
    sections = [
        *_side_sections(today, "" if against is None else f" of {_whose(today)}", behind),
        *([] if against is None else _side_sections(against, f" of {_whose(against)}", behind)),
        *([] if replay.compared is None else [_compared(replay.compared)]),
        *([] if replay.statuses is None else [_statuses(replay.statuses)]),
        *([] if replay.obedient is None else [_obedient(replay.obedient, today)]),
        *_over_time(replay.timeline, series=series),
    ]
    stopped = f"stopped after {counted(replay.lines, 'line')}; everything below is of these" if replay.partial else ""
    return Report(f"Replay of {logs}", tuple(_answer(replay)), tuple(sections), stopped, made_by)


def _answer(replay: PolicyReplay) -> Iterator[str]:
    today, against = replay.today, replay.against
    when = ""
    if replay.first is not None and replay.last is not None:
        when = f" from {say_time(replay.first // _SECOND)} to {say_time(replay.last // _SECOND)}"
    yield f"{counted(today.requests, 'request')}{when}."
    yield f"{_whose(today)} refuses {_share(today.refused, today.requests)}."
    if against is not None:
        yield f"{_whose(against)} refuses {_share(against.refused, against.requests)}."
    for side in (today, against):
        if side is None:
            continue
        for name, count in side.undecided.items():
            yield (
                f"{_whose(side)} could not decide {counted(count, 'request')}: {'its' if count == 1 else 'their'} {name!r} is "
                "missing or says nothing to it."
            )
        if side.exempt:
            yield f"Exempt from {_whose(side)}: {counted(side.exempt, 'request')}."
        for name in side.left_out:
            yield f"Limit {name!r} counts requests at once, and a log does not say when one ended: it is left out."
    if replay.unparsed:
        yield f"{replay.unparsed:,} of {counted(replay.lines, 'line')} could not be read."
    if replay.out_of_order:
        are = "is" if replay.out_of_order == 1 else "are"
        yield f"{counted(replay.out_of_order, 'request')} {are} out of order, decided at the latest time before."


def _side_sections(side: SideReplay, whose: str, behind: str | None) -> Iterator[Section]:
    if not side.limits:
        return
    columns = (
        "limit", "quota", "by", "requests", "refused", "share", "binding", "keys", "keys refused", "first", "last",
        "median wait", "longest wait",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            f"{limit.name} (shadow)" if limit.shadow else limit.name,
            limit.quota if limit.quota.startswith("block") else f"{limit.quota} ({limit.algorithm})",
            ", ".join(limit.by) or _EVERYONE,
            limit.asked,
            limit.refused,
            _percent(limit.refused, limit.asked),
            limit.bound,
            limit.keys,
            limit.keys_refused,
            _when(limit.first),
            _when(limit.last),
            _long(limit.told_median),
            _long(limit.told_most),
        )
        for limit in side.limits
    ]
    note = (
        "A shadow limit refuses nobody: what stands there it would have."
        if any(limit.shadow for limit in side.limits)
        else ""
    )
    yield Section(f"Limits{whose}", tables=(Table("What each limit refused", columns, tuple(rows), note),))
    tables = tuple(table for limit in side.limits if limit.most_refused for table in _keys(limit, behind))
    if tables:
        said = "Closed: from the first refusal until the wait that was told last was over, all stretches together."
        yield Section(f"Keys most refused{whose}", (said,), tables=tables)


def _keys(limit: LimitReplay, behind: str | None) -> Iterator[Table]:
    columns = (
        "key", "requests", "refused", "first", "last", "stretches", "closed", "longest",
        *((f"different {behind}s",) if behind else ()),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            ", ".join(key.key) or _EVERYONE,
            key.requests,
            key.refused,
            _when(key.first),
            _when(key.last),
            key.stretches,
            "for good" if key.never == key.refused else _long(key.closed),
            "for good" if key.never else _long(key.longest_closed),
            *((key.behind,) if behind else ()),
        )
        for key in limit.most_refused
    ]
    yield Table(f"By {limit.name}", columns, tuple(rows))
    if limit.callers:
        yield Table(f"Whom {limit.name} refused most", ("caller", "refused"), limit.callers)


def _compared(found: Compared) -> Section:
    both = Table(
        "Requests",
        ("", "proposed admits", "proposed refuses"),
        (
            ("today admits", found.both_admitted, found.newly_refused),
            ("today refuses", found.newly_admitted, found.both_refused),
        ),
        f"{found.incomparable:,} more could be decided by one of them only." if found.incomparable else "",
    )
    tables = [both]
    if found.by_limit:
        rows = tuple((_CHANGES[kind], limit, requests) for kind, limit, requests in found.by_limit)
        tables.append(Table("By limit", ("change", "limit", "requests"), rows))
        keys = tuple((_CHANGES[kind], limit, ", ".join(key) or _EVERYONE, n) for kind, limit, _, key, n in found.by_key)
        tables.append(Table("By key, the most", ("change", "limit", "key", "requests"), keys))
    said = (
        f"Newly refused: {counted(found.newly_refused, 'request')} of {counted(found.keys_newly_refused, 'key')}. "
        f"Newly admitted: {counted(found.newly_admitted, 'request')} of {counted(found.keys_newly_admitted, 'key')}."
    )
    return Section("Today's policy and the proposed one", (said,), tables=tuple(tables))


def _statuses(found: Statuses) -> Section:
    codes = ", ".join(map(str, found.codes))
    table = Table(
        "Requests",
        ("", "policy admits", "policy refuses"),
        (
            (f"log has {codes}", found.only_log, found.both),
            ("log has another status", found.neither, found.only_policy),
        ),
        f"{found.unknown:,} more have no status." if found.unknown else "",
    )
    whole = found.both + found.neither + found.only_log + found.only_policy
    return Section(
        "What really happened",
        (f"Log and policy agree on {_share(found.both + found.neither, whole)} of the requests.",),
        tables=(table,),
    )


def _obedient(found: ObedientReplay, today: SideReplay) -> Section:
    rows: list[tuple[Cell, ...]] = [
        ("requests", found.requests, today.requests),
        ("passed when they came", found.at_once, today.requests - today.refused),
        ("passed later", found.later, 0),
        ("never pass", found.given_up, None),
        ("refusals", found.refusals, today.refused),
        ("dropped as tried again", found.dropped, None),
        ("still waiting", found.waiting, None),
    ]
    how = (
        "what a caller sends while it waits follows in its order"
        if found.mode == KEEP
        else "what a caller sends while it waits is taken for the same request, and dropped"
    )
    said = [f"Callers that are refused come back exactly when they were told to; {how}."]
    if found.later:
        said.append(
            f"1 request passes later: after {_long(found.later_most)}."
            if found.later == 1
            else f"{counted(found.later, 'request')} pass later: {_long(found.later_mean)} on average, half of them within "
            f"{_long(found.later_median)}, all within {_long(found.later_most)}."
        )
    if found.cut:
        said.append("So many callers came back at the same instants that the simulation was stopped.")
    return Section(
        "Obedient callers", tuple(said), tables=(Table("Requests", ("", "obedient", "as logged"), tuple(rows)),)
    )


def _over_time(timeline: Timeline, *, series: bool) -> Iterator[Section]:
    if not timeline.rows():
        return
    step, bars = _merged(timeline, _MOST_BARS)
    width = step / _SECOND
    refused = [(start / _SECOND, float(counts[1])) for start, counts in bars]
    admitted = [(start / _SECOND, float(counts[0] - counts[1])) for start, counts in bars]
    each = _long(step)
    chart = Chart(
        "Requests over time",
        Axis("time", "UTC", Scale.TIME),
        Axis(f"requests in {each}"),
        (
            Series("admitted", tuple(admitted), Kind.BARS, width),
            Series("refused", tuple(refused), Kind.BARS, width),
        ),
        description=f"Requests in each {each}: those that the policy admits, and on top of them those that it refuses.",
    )
    known, none = dict(bars), [0] * len(timeline.kinds)
    every = [(at, known.get(at, none)) for at in range(bars[0][0], bars[-1][0] + step, step)]
    tables: tuple[Table, ...] = ()
    said: tuple[str, ...] = ()
    if series:
        coarse, steps = _merged(timeline, _MOST_ROWS)
        columns = ("time", *(kind.replace("_", " ") for kind in timeline.kinds))
        rows: list[tuple[Cell, ...]] = [(say_time(start // _SECOND), *counts) for start, counts in steps]
        note = f"Steps of {_long(coarse)}; those without requests are left out."
        if coarse != timeline.step:
            note += f" --json has each {_long(timeline.step)}."
        tables = (Table("Requests in each step", columns, tuple(rows), note),)
        said = tuple(
            f"{timeline.kinds[kind]} in each {each}: {sparkline([counts[kind] for _, counts in every])}"
            for kind in (0, 1)
        )
    charts = (chart, *_refusals(timeline.kinds, every, each))
    yield Section("Over time", said, charts, tables)


def _refusals(kinds: tuple[str, ...], bars: list[tuple[int, list[int]]], each: str | None) -> Iterator[Chart]:
    """Who refused how many, where there is more than the policy to be seen: the log itself, a proposed policy."""
    others = [kind for kind in range(2, len(kinds)) if any(counts[kind] for _, counts in bars)]
    if others:
        yield Chart(
            "Refusals over time",
            Axis("time", "UTC", Scale.TIME),
            Axis(f"refusals in {each}"),
            tuple(
                Series(
                    _KINDS[kinds[kind]], tuple((at / _SECOND, float(counts[kind])) for at, counts in bars), Kind.STEPS
                )
                for kind in (1, *others)
            ),
            description=f"Refusals in each {each}, by the policy and by what stands beside it.",
        )


def _merged(timeline: Timeline, most: int) -> tuple[int, list[tuple[int, list[int]]]]:
    """The timeline in at most ``most`` steps from its first to its last: the step in ns, and its rows."""
    rows = timeline.rows()
    step = timeline.step
    while (rows[-1][0] // step - rows[0][0] // step) >= most:
        step *= 2
    merged: dict[int, list[int]] = {}
    for start, counts in rows:
        into = merged.setdefault(start // step * step, [0] * len(counts))
        for kind, count in enumerate(counts):
            into[kind] += count
    return step, sorted(merged.items())


def sparkline(counts: Sequence[int]) -> str:
    """Counts as a row of bars, the highest at full height; a space for 0."""
    most = max(counts, default=0)
    return "".join(" " if not count else _SPARKS[-(-count * len(_SPARKS) // most) - 1] for count in counts)


def _whose(side: SideReplay) -> str:
    return f"{side.policy!r} of {side.source}" if side.source else f"{side.policy!r}"


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({_percent(part, whole)})" if whole else f"{part:,}"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}".replace("%", " %") if whole else "–"


def _when(nanoseconds: int | None) -> str | None:
    return None if nanoseconds is None else say_time(nanoseconds // _SECOND)


def _long(nanoseconds: int | None) -> str | None:
    return None if nanoseconds is None else say_duration(Fraction(nanoseconds, _SECOND)).removeprefix("about ")
