"""What is rendered is read back: 20,000 random decisions, in every dialect, form and language; http-sf is the oracle."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import cycle
from random import Random

import http_sf
import pytest

from headway.core.quota import DAY, HOUR, MINUTE, SECOND
from headway.core.verdict import Verdict
from headway.presentation.dialect import Dialect
from headway.presentation.facts import MAX_INTEGER
from headway.presentation.fields import fields
from headway.presentation.hear import hear
from headway.presentation.language import LOCALES
from headway.presentation.problem import Problem, problem
from headway.presentation.read import read_fields
from headway.presentation.response import read_problem, respond
from headway.presentation.sentence import sentence

from .verdicts import NOW, one_refusal, random_verdicts

COUNT = 20_000
OLD = (Dialect.DRAFT6, Dialect.DRAFT7, Dialect.X_RATELIMIT_DELTA, Dialect.X_RATELIMIT_EPOCH)


def _up(nanoseconds: int) -> int:
    whole, rest = divmod(nanoseconds, SECOND)
    return whole + (rest > 0)


def _expected_limits(verdict: Verdict) -> list[tuple[str, int, int | None]]:
    """(name, remaining, t) of every limit the store knew of."""
    pairs = zip(verdict.limits, verdict.outcomes, strict=True)
    return [
        (limit.name, outcome.remaining, _up(outcome.replenish_after) or None)
        for limit, outcome in pairs
        if outcome is not None
    ]


def _check_draft11(verdict: Verdict) -> None:
    sent = fields(verdict)
    if verdict.allowed and verdict.degraded:
        assert sent == ()
        return
    reading = read_fields(sent)
    oracle = {
        name: http_sf.parse(value.encode("ascii"), tltype="list") for name, value in sent if name.startswith("Rate")
    }
    assert [(item, params["q"], params.get("w")) for item, params in oracle["RateLimit-Policy"]] == [
        (item.name, item.quota, item.window) for item in reading.quotas
    ]
    assert [(item, params["r"], params.get("t")) for item, params in oracle.get("RateLimit", [])] == [
        (item.name, item.remaining, item.replenish) for item in reading.limits
    ]
    for limit, item in zip(verdict.limits, reading.quotas, strict=True):
        assert item.name == limit.name
        assert item.burst == (limit.quota.burst if limit.quota.burst != limit.quota.count else None)
        assert (item.window is None, item.unit == "concurrent-requests") == (limit.quota.concurrent,) * 2
        if item.window is not None and item.quota < MAX_INTEGER:
            assert Fraction(item.quota, item.window) == Fraction(limit.quota.count * SECOND, limit.quota.period_ns)
    for (name, remaining, t), item in zip(_expected_limits(verdict), reading.limits, strict=True):
        assert (item.name, item.replenish) == (name, t)
        assert min(remaining, 60) <= item.remaining <= remaining
    if verdict.allowed or verdict.never:
        assert reading.retry_after is None
    else:
        violated = [
            item.replenish or 0 for item in reading.limits if item.name in [one.name for one in verdict.violated]
        ]
        assert verdict.retry_after is not None and reading.retry_after is not None
        assert reading.retry_after >= max(1, _up(verdict.retry_after), *violated)
        assert reading.retry_after <= max(1, _up(verdict.retry_after), *violated)


def _check_old(verdict: Verdict, dialect: Dialect) -> None:
    reading = read_fields(fields(verdict, (dialect,)), dialect)
    known = [outcome for outcome in verdict.outcomes if outcome is not None]
    if (verdict.allowed and verdict.degraded) or not known:
        assert reading.limits == ()
        return
    (item,) = reading.limits
    shown = verdict.binding or min(known, key=lambda outcome: outcome.remaining)
    base = verdict.now if dialect is Dialect.X_RATELIMIT_EPOCH else 0
    assert (item.remaining, item.reset) == (shown.remaining, _up(base + shown.reset_after))
    assert item.most is not None and 0 <= item.remaining <= item.most
    if dialect in (Dialect.DRAFT6, Dialect.DRAFT7):
        assert [quota.quota for quota in reading.quotas] == [
            quota.quota for quota in read_fields(fields(verdict)).quotas
        ]


def _check_sentence(verdict: Verdict, locale: str) -> None:
    said = hear(sentence(verdict, locale), verdict.now, locale)
    wait = verdict.retry_after
    if verdict.allowed or wait is None:
        assert said is None
        return
    unit = SECOND if wait <= 119 * SECOND else MINUTE if wait < 8000 * 365 * DAY else DAY
    assert said is not None, sentence(verdict, locale)
    assert 0 <= said - (verdict.now + wait) < unit, sentence(verdict, locale)


def test_twenty_thousand_decisions_round_trip() -> None:
    """Whatever is decided, its fields, problem document and sentence are read back as what was decided, never early."""
    seen = set()
    locales, dialects = cycle(LOCALES), cycle(OLD)
    for verdict in random_verdicts(1, COUNT):
        _check_draft11(verdict)
        _check_old(verdict, next(dialects))
        _check_sentence(verdict, next(locales))
        if not verdict.allowed:
            document = json.loads(json.dumps(problem(verdict)))
            assert Problem.read(document) == Problem.of(verdict)
            assert document == Problem.read(document).document()
        seen.add((verdict.allowed, verdict.never, verdict.blocked, verdict.degraded is not None))
    assert len(seen) == 8  # admitted, refused, never, blocked; each also where the store did not answer for all


def test_pages_and_json_bodies_carry_the_problem() -> None:
    """The HTML page and the JSON body hold the whole problem document, whatever the language."""
    locales = cycle(LOCALES)
    for verdict in random_verdicts(2, 300):
        if verdict.allowed:
            continue
        tongue = next(locales)
        for accept in ("text/html", "application/problem+json"):
            answer = respond(verdict, accept=accept, accept_language=tongue)
            assert read_problem(answer) == Problem.of(verdict, tongue)


def test_every_dialect_at_once_is_read_back() -> None:
    """Dialects that are sent together are each read back as if alone, but for the shared RateLimit-Policy."""
    together = (Dialect.DRAFT11, Dialect.DRAFT12_PREVIEW, Dialect.DRAFT6, Dialect.X_RATELIMIT_EPOCH)
    for verdict in random_verdicts(3, 300):
        sent = fields(verdict, together)
        assert len({name for name, _ in sent}) == len(sent)
        for dialect in (Dialect.DRAFT11, Dialect.DRAFT12_PREVIEW, Dialect.X_RATELIMIT_EPOCH):
            assert read_fields(sent, dialect) == read_fields(fields(verdict, (dialect,)), dialect)
        alone = dict(fields(verdict, (Dialect.DRAFT6,)))
        assert {name: value for name, value in alone.items() if name != "RateLimit-Policy"}.items() <= dict(
            sent
        ).items()


@pytest.mark.parametrize("locale", LOCALES)
def test_sentences_are_never_early(locale: str) -> None:
    """In every language the sentence names a moment at or after admission, and less than a unit after it."""
    random = Random(locale)
    for _ in range(1500):
        wait = random.choice(
            (random.randint(1, 200 * SECOND), random.randint(1, 2 * HOUR), random.randint(1, 900 * DAY))
        )
        _check_sentence(one_refusal(wait, now=NOW + random.randint(0, 400 * DAY)), locale)


def test_a_repeated_minute_is_told_apart() -> None:
    """Where daylight saving ends, the sentence says which of the two equal times on the clock it means."""
    from headway.core.limit import Limit

    limit = Limit("daily", "5 per day in Europe/Berlin", by="phone")
    first = 1_793_493_000 * SECOND  # 2026-11-01 00:30 UTC; Berlin's clocks went back on 2026-10-25 at 01:00 UTC
    for shift in (0, HOUR):
        at = first - 7 * DAY + shift
        verdict = one_refusal(at - (NOW - 90 * DAY), limit, NOW - 90 * DAY)
        said = sentence(verdict)
        assert f"02:30 (Europe/Berlin, UTC+0{2 - shift // HOUR}:00)" in said
        assert hear(said, verdict.now) == at
