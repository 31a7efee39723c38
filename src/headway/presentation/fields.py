"""A verdict as header fields, in one or several dialects. ``read_fields`` reads them back.

Names of limits go into a header as they are: ``core.limit.check_name`` lets nothing else through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core.limit import Limit
from headway.core.verdict import Verdict
from headway.presentation.dialect import Dialect, check_dialects
from headway.presentation.facts import Advertised, advertise, retry_after_seconds
from headway.presentation.rounding import seconds_up

__all__ = ["DEFAULT_DIALECTS", "Fields", "expose", "fields"]

Fields = tuple[tuple[str, str], ...]
"""Header fields as (name, value), each name once."""

_DRAFT11: Final = Dialect.DRAFT11
_DRAFT12: Final = Dialect.DRAFT12_PREVIEW
DEFAULT_DIALECTS: Final = (_DRAFT11,)
_MOST_READY: Final = 1024
_Ready = tuple[tuple[Limit, ...], str, tuple[tuple[int, str, Advertised | None], ...]]
_READY: Final[dict[int, _Ready]] = {}
"""By the identity of a tuple of limits, which it keeps alive: most answers of a program are about the same few tuples."""
_DELTAS: Final = (Dialect.DRAFT6, Dialect.X_RATELIMIT_DELTA)
_EXPOSE: Final = "Access-Control-Expose-Headers"


def fields(
    verdict: Verdict,
    dialects: str | Iterable[str] = DEFAULT_DIALECTS,
    *,
    partition_keys: Sequence[bytes | None] = (),
    cors: bool = False,
) -> Fields:
    """The fields that go on the response to a request, admitted or refused.

    ``Retry-After`` is among them exactly when the request was refused and waiting helps, whatever the dialects. A
    request admitted without the store (degraded) gets no field: nothing is known. What the store did not say is left
    out: a refusal of that kind has ``RateLimit-Policy`` and ``Retry-After`` only.

    Args:
        verdict: the decision's facts.
        dialects: one or several; see ``check_dialects``.
        partition_keys: for the parameter ``pk`` of the list dialects: one opaque tag or None a limit, made by
            ``partition_key``; the attributes themselves must never be sent.
        cors: also name these fields in ``Access-Control-Expose-Headers``; see ``expose`` to merge with an answer's own.

    Raises:
        ConfigError: dialects that are unknown or exclude each other.
        LimitError: ``partition_keys`` that are not one for each limit.
    """
    if verdict.allowed and verdict.degraded is not None:
        return ()
    found: dict[str, str] = {}
    if dialects is DEFAULT_DIALECTS and not partition_keys:
        _write_draft11(found, verdict)
    else:
        chosen = check_dialects(dialects)
        lines = advertise(verdict, partition_keys)
        if lines:
            if _DRAFT11 in chosen or _DRAFT12 in chosen:
                _write_lists(found, lines, chosen)
            _write_older(found, verdict, lines, chosen)
    wait = retry_after_seconds(verdict)
    if wait is not None:
        found["Retry-After"] = str(wait)
    if cors and found:
        found[_EXPOSE] = ", ".join(found)
    return tuple(found.items())


def expose(sent: Iterable[tuple[str, str]], existing: str | None = None) -> tuple[str, str]:
    """The ``Access-Control-Expose-Headers`` field of an answer that has some of its own.

    Args:
        sent: the fields to expose, as ``fields`` gave them.
        existing: the value the application already sends, or None. It is kept, and so is a ``*`` (which means every
            field only for requests without credentials, so the names are added to it).
    """
    names = [name.strip() for name in (existing or "").split(",") if name.strip()]
    known = {name.lower() for name in names}
    names += [name for name, _ in sent if name.lower() not in known and name != _EXPOSE]
    return _EXPOSE, ", ".join(names)


def _one(verdict: Verdict, lines: Sequence[Advertised]) -> Advertised | None:
    """The limit that dialects with room for one show: the binding one, or the tightest that the store knew."""
    if verdict.bound is not None:
        name = verdict.limits[verdict.bound].name
        return next((line for line in lines if line.name == name), None)
    known = [line for line in lines if line.remaining is not None]
    return min(known, key=lambda line: (line.remaining, line.name), default=None)


def _write_draft11(found: dict[str, str], verdict: Verdict) -> None:
    """What ``_write_lists`` writes of draft -11 alone, from parts that are made once for a tuple of limits."""
    limits, outcomes = verdict.limits, verdict.outcomes
    ready = _READY.get(id(limits))
    if ready is None or ready[0] is not limits:
        if len(_READY) >= _MOST_READY:
            _READY.clear()
        ready = _READY[id(limits)] = _made_ready(limits)
    _, policy, parts = ready
    if not parts:
        return
    found["RateLimit-Policy"] = policy
    items = []
    for index, begun, line in parts:
        outcome = outcomes[index]
        if outcome is None:
            continue
        replenish = seconds_up(outcome.replenish_after) or None
        if line is not None:
            items.append(_item(line._replace(remaining=outcome.remaining, replenish=replenish), True, False))
        elif replenish is None:
            items.append(f"{begun}{outcome.remaining}")
        else:
            items.append(f"{begun}{outcome.remaining};t={replenish}")
    if items:
        found["RateLimit"] = ", ".join(items)


def _made_ready(limits: tuple[Limit, ...]) -> _Ready:
    """The parts that do not depend on a verdict; a limit whose ``r`` may be capped keeps its line."""
    lines = advertise(Verdict(limits, (None,) * len(limits), True, 0))
    shown = (index for index, limit in enumerate(limits) if not limit.shadow)
    parts = tuple(
        (index, f'"{line.name}";r=', line if line.may_be_capped else None)
        for index, line in zip(shown, lines, strict=True)
    )
    return limits, ", ".join([_policy(line) for line in lines]), parts


def _write_lists(found: dict[str, str], lines: Sequence[Advertised], chosen: Sequence[Dialect]) -> None:
    """Draft -11, the -12 preview, or both in one item: unknown parameters are comments to either."""
    found["RateLimit-Policy"] = ", ".join([_policy(line) for line in lines])
    eleven, twelve = _DRAFT11 in chosen, _DRAFT12 in chosen
    items = [_item(line, eleven, twelve) for line in lines if line.remaining is not None]
    if items:
        found["RateLimit"] = ", ".join(items)


def _policy(line: Advertised) -> str:
    if line.concurrent:
        return f'"{line.name}";q={line.own_count};qu="concurrent-requests"'
    burst = f";headway-burst={line.burst}" if line.burst != line.own_count else ""
    return f'"{line.name}";q={line.quota};w={line.window}{burst}'


def _item(line: Advertised, eleven: bool, twelve: bool) -> str:
    offered, replenish = line.offered, line.replenish
    text = f'"{line.name}"'
    if eleven:
        text += f";r={offered}" if replenish is None else f";r={offered};t={replenish}"
    if twelve:
        text += f";a={offered}" if replenish is None else f";a={offered};w={replenish}"
        if line.cost is not None:
            text += f";c={line.cost}"
    if line.partition_key is not None:
        from base64 import b64encode

        text += f";pk=:{b64encode(line.partition_key).decode('ascii')}:"
    return text


def _write_older(
    found: dict[str, str], verdict: Verdict, lines: Sequence[Advertised], chosen: Sequence[Dialect]
) -> None:
    shown = _one(verdict, lines)
    if Dialect.DRAFT7 in chosen:
        _write_draft7(found, lines, shown)
    if Dialect.DRAFT6 in chosen:
        found.setdefault("RateLimit-Policy", _old_policy(lines))
        _write_three(found, "RateLimit-", shown, verdict.now, Dialect.DRAFT6)
    for dialect in (Dialect.X_RATELIMIT_EPOCH, Dialect.X_RATELIMIT_DELTA):
        if dialect in chosen:
            _write_three(found, "X-RateLimit-", shown, verdict.now, dialect)


def _write_draft7(found: dict[str, str], lines: Sequence[Advertised], shown: Advertised | None) -> None:
    found["RateLimit-Policy"] = _old_policy(lines)
    if shown is not None:
        found["RateLimit"] = f"limit={shown.burst}, remaining={shown.remaining}, reset={seconds_up(shown.reset)}"


def _old_policy(lines: Sequence[Advertised]) -> str:
    """Drafts -04 to -07: the quota is the item's value; ``burst`` is the parameter of -06's own example."""
    return ", ".join(
        [
            f"{line.quota};w={line.window}" + (f";burst={line.burst}" if line.burst != line.own_count else "")
            for line in lines
        ]
    )


def _write_three(found: dict[str, str], prefix: str, shown: Advertised | None, now: int, dialect: Dialect) -> None:
    if shown is None:
        return
    found[f"{prefix}Limit"] = str(shown.burst)
    found[f"{prefix}Remaining"] = str(shown.remaining)
    found[f"{prefix}Reset"] = str(seconds_up(shown.reset if dialect in _DELTAS else now + shown.reset))
