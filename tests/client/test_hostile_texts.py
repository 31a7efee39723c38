"""Texts that a server made to be expensive to read: they cost hardly more than an honest refusal does."""

import time
from urllib.parse import quote

import pytest

from headway.client import read

_HONEST = "Rate limit reached for requests. Limit: 3 / min. Please try again in 20s. Visit the site to learn more. "
_LONG = 4096
_TIMES = 20
"""A hostile text may take as many times what an honest one takes: it is longer, too."""
_TEXTS = (
    *(
        "wart",
        "wart_xx_",
        "versuch ",
        "versuch in einer ",
        "in 5 Minuten ",
        "morgen ",
        "wart morge",
        "等待5",
        "5 秒",
        "повтор ",
    ),
    *(
        "again ",
        "again the ",
        "try in in in in ",
        "wait a ",
        "wait a moment ",
        "retry after 5 ",
        "blocked until ",
        "1 s ",
        "1 s left ",
    ),
    *(
        "1 s 1 s 1 s before ",
        "1",
        "1 ",
        "1-",
        "1.1",
        "1d",
        "1d2h",
        "PT1H ",
        "00:00 ",
        "at 00:00 ",
        "at 12 pm ",
        "tomorrow at ",
    ),
    *(
        "exceed",
        "exceeded a ",
        "exceeded limit no ",
        "limit",
        "limit limits ",
        "max requests ",
        "no more credits ",
        "balance ",
    ),
    *(
        "another request ",
        "server a a ",
        "one request ",
        "reached limit ",
        "temporarily ",
        "concurrent",
        "per 1 day ",
        "a 1 d ",
    ),
    *(
        "day ",
        "hour ",
        "/ 1 ",
        "24 h ",
        "Mon, 01 Jan 2026 00:00:00 ",
        "2026-01-01T00:00:00 ",
        "Jan 01 2026 ",
        "AaBb",
        "a-per-",
    ),
    *("<", "<a ", "<a>", "<script>", "<error>", "&amp;", "http://a ", "www.", " ", "\n", "\u2028", "\ud800", "_", "'"),
)


def _took(status: int, headers: list[tuple[str, str]], body: str) -> float:
    """The least CPU time, in seconds, of a few readings; each of another text, since readings of one are remembered."""
    least = 1.0
    for turn in range(4):
        began = time.thread_time()
        read(status, [(name, f"{turn}{value}") for name, value in headers], f"{turn} {body}", received_at=0.0)
        least = min(least, time.thread_time() - began)
    return least


def _longest() -> float:
    read(429, None, _HONEST)  # tables that are read once
    return _TIMES * max(_took(429, [], _HONEST), 1e-4)


@pytest.mark.parametrize("piece", _TEXTS)
@pytest.mark.parametrize("first", ["", "Please wait. You exceeded the limit. "], ids=["alone", "after an honest start"])
def test_no_text_takes_the_square_of_its_length(piece: str, first: str) -> None:
    """Four kilobytes of one word or the beginning of a phrase, in a body and in a sentence of JSON."""
    text = (first + piece * _LONG)[:_LONG]
    allowed = _longest()
    assert _took(429, [], text) < allowed
    assert _took(400, [("content-type", "text/html")], f"<html>{text}") < allowed


@pytest.mark.parametrize(
    "piece", ["a9", "a=1/1 ", "1d2h", "1/1,", "%", '"a";q=1,', "1;w=1,", "1 per 1 s ", "Mon, 01 Jan 2026 "]
)
@pytest.mark.parametrize(
    "name", ["X-RateLimit-Remaining", "RateLimit", "RateLimit-Policy", "Retry-After", "Date", "grpc-message"]
)
def test_no_field_takes_the_square_of_its_length(name: str, piece: str) -> None:
    """The same for header fields and for gRPC's trailers."""
    value = (piece * _LONG)[:_LONG]
    assert _took(429, [(name, value), ("X-Left", "a=1/1 " + value)], "") < _longest()
    assert read(200, [("grpc-status", "8"), ("grpc-message", quote(value))], None) is not None


def test_a_long_text_hides_no_short_one() -> None:
    """A trace of thousands of characters comes first, the sentence that says how long to wait last."""
    trace = "at frame of the application " * 400
    rejection = read(429, None, {"detail": trace[:9000], "message": "Try again in 7 seconds."})
    assert rejection is not None
    assert rejection.retry_after == 7


def test_blanks_do_not_hide_a_wait() -> None:
    """However many blanks there are between the words of a sentence."""
    rejection = read(
        429, None, "Too many requests." + " " * 500 + "Try again" + " " * 500 + "in 7" + "\n" * 500 + "seconds"
    )
    assert rejection is not None
    assert rejection.retry_after == 7
