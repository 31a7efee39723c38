"""Captures: `curl -i`, `curl -v`, HAR and JSON lines give the same responses."""

import json

import pytest

from headway.client.captures import Capture, from_json_lines, from_text

CURL = (
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n"
    "HTTP/2 429 \r\ndate: Sat, 01 Aug 2026 00:00:00 GMT\r\nretry-after: 7\r\n\r\nslow\r\n\r\nHTTP/1.1 is quoted here\r\n"
)


def only(text: str) -> Capture:
    """Read a capture of one response."""
    (capture,) = from_text(text)
    return capture


def test_curl_gives_the_last_response() -> None:
    """Of interim answers and redirects only the last response is read, with its body whole."""
    capture = only(CURL)
    assert capture.status == 429
    assert dict(capture.headers) == {"date": "Sat, 01 Aug 2026 00:00:00 GMT", "retry-after": "7"}
    assert capture.body == "slow\r\n\r\nHTTP/1.1 is quoted here\r\n"
    assert capture.received_at is not None
    assert capture.received_at.isoformat() == "2026-08-01T00:00:00+00:00"


def test_several_curls_give_several_responses() -> None:
    """Captures written one after another are several responses."""
    text = "HTTP/1.1 429 A\nRetry-After: 1\n\nfirst\nHTTP/1.1 503 B\nRetry-After: 2\n\nsecond\n"
    assert [(one.status, one.body) for one in from_text(text)] == [(429, "first"), (503, "second\n")]


def test_verbose_curl_is_understood() -> None:
    """Of `curl -v` only what was received is read."""
    text = "* Connected\n> GET / HTTP/1.1\n> Host: x\n>\n< HTTP/1.1 429 Too Many\n< Retry-After: 5\n<\nslow\n* Done\n"
    capture = only(text)
    assert (capture.status, capture.headers, capture.body) == (429, (("Retry-After", "5"),), "slow\n")


def test_har_gives_every_response() -> None:
    """A HAR entry gives its URL, its arrival (start plus duration) and its body, base64 or not."""
    entry = {
        "startedDateTime": "2026-08-01T00:00:00Z",
        "time": 1500,
        "request": {"url": "https://api.example/x"},
        "response": {
            "status": 429,
            "headers": [{"name": "Retry-After", "value": "3"}],
            "content": {"text": "c2xvdw==", "encoding": "base64"},
        },
    }
    capture = only(json.dumps({"log": {"entries": [entry]}}))
    assert (capture.id, capture.status, capture.body) == ("https://api.example/x", 429, b"slow")
    assert capture.received_at is not None
    assert capture.received_at.isoformat() == "2026-08-01T00:00:01.500000+00:00"


def test_json_lines_give_one_response_a_line() -> None:
    """A line has status, headers as pairs or an object, a body, perhaps an id and an arrival."""
    lines = [
        {
            "id": 7,
            "status": 429,
            "headers": [["Retry-After", "1"], ["Retry-After", "2"]],
            "body": "x",
            "received_at": 0,
        },
        {"status": "503", "headers": {"Retry-After": 3}, "body": None},
    ]
    first, second = from_text("\n".join(json.dumps(line) for line in lines))
    assert (first.id, first.status, len(first.headers), first.body) == ("7", 429, 2, "x")
    assert (second.id, second.status, second.headers, second.body) == (None, 503, (("Retry-After", "3"),), "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hello", "status line"),
        ("", "status line"),
        ('{"log": {}}', "log.entries"),
        ('{"log": {"entries": [{}]}}', "entry 0"),
        ('{"status": 429}\nnope', "line 2"),
        ('{"headers": []}', "line 1"),
    ],
)
def test_an_unreadable_capture_says_where(text: str, says: str) -> None:
    """What is no capture is refused with the place and what was expected."""
    with pytest.raises(ValueError, match=says):
        list(from_text(text))


def test_json_lines_name_the_line() -> None:
    """A line that is no object of a response is named."""
    with pytest.raises(ValueError, match="line 3"):
        list(from_json_lines('{"status": 1}\n\n[]'))
