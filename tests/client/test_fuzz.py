"""Whatever a server sends, reading answers: no exception, no wait that nobody could act on."""

import math
import random

import pytest
from tests.client.corpus import cases

from headway.client import read

_MUTATIONS = 5_000
_JUNK = (
    *("NaN", "inf", "-1", "1e309", "9" * 400, "9" * 5000, "\x00", "é", "١٢", "{", "[" * 300, '"', "", " "),
    *("2026-99-99T99:99:99Z", "Sat, 31 Feb 2026 25:61:61 GMT", "P9999999999D", "1" * 30 + "h", "null", "true"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "try again in " + "9" * 400 + " hours"),
    *("retry after 99999999999999999999", "resets 25:99pm (Nowhere/City)", ";w=", "=", ",", ":", "%", "\ud800"),
)


def _mutated(text: str, chance: random.Random) -> str:
    """Cut, repeat, replace or insert a few times."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 12))
        middle = chance.choice(
            ["", chance.choice(_JUNK), text[start:end] * 3, chr(chance.choice([0, 34, 44, 59, 8239]))]
        )
        text = text[:start] + middle + text[end:]
    return text


def test_mutated_responses_never_raise() -> None:
    """Thousands of mutated recorded responses are read without an exception, into finite waits and whole sentences."""
    chance = random.Random(20260801)
    recorded = cases()
    for _ in range(_MUTATIONS):
        case = chance.choice(recorded)
        headers = [list(pair) for pair in case.headers]
        if headers:
            place = chance.randrange(len(headers))
            part = chance.choice((0, 1, 1, 1))
            headers[place][part] = _mutated(headers[place][part], chance)
        if chance.random() < 0.3:
            headers += [list(pair) for pair in chance.choice(recorded).headers]
        body: str | bytes = _mutated(case.body, chance) if chance.random() < 0.6 else case.body
        if chance.random() < 0.2:
            body = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        status = chance.choice([case.status, 200, 400, 403, 429, 503, 0, 999])
        rejection = read(status, headers, body, received_at=1785542400.0)
        if rejection is not None:
            assert rejection.retry_after is None or 0 <= rejection.retry_after < math.inf
            assert rejection.sentence().endswith(".")
            assert rejection.body is body


def test_strange_values_are_read() -> None:
    """Values that are no text at all, and bodies of every type, are read without an exception."""
    for body in (
        None,
        b"\x1f\x8b\x08",
        b"\xff\xfe",
        5,
        [],
        {},
        [[["a"]]],
        {"error": {"error": {"error": None}}},
        {1: 2},
    ):
        for headers in (
            None,
            [],
            [("Retry-After",)],
            [(None, None)],
            {"Retry-After": None},
            {"Retry-After": 7},
            [1, 2],
        ):
            assert read(429, headers, body, received_at=0.0) is not None


@pytest.mark.parametrize("date", ["Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"])
@pytest.mark.parametrize(
    "body", ["Try again tomorrow (UTC).", "It resets at 5pm (Asia/Tokyo).", "It resets at midnight Pacific Time (PT)."]
)
def test_a_server_whose_clock_no_calendar_holds_is_waited_for_all_the_same(date: str, body: str) -> None:
    """`Date` is the server's word: "tomorrow" after the last day of the year 9999 is a wait of about a day, no error."""
    rejection = read(429, [("Date", date)], body, received_at=1785542400.0)
    assert rejection is not None
    assert rejection.retry_after is not None
    assert 0 < rejection.retry_after <= 2.5 * 86_400
