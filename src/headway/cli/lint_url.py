"""Asking a URL politely: one request, or a stated few, one after another, that end with the first refusal."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from importlib.metadata import version
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import urlsplit

from headway.analysis.lint.answer import Answer, Place
from headway.client.reading import read

__all__ = ["MOST", "ask", "check_url"]

MOST: Final = 20
"""Requests that ``--probe`` sends at most."""
_LONGEST_BODY: Final = 64 * 1024

_Head = tuple[int, tuple[tuple[str, str], ...]]


class _StayHere(urllib.request.HTTPRedirectHandler):
    """A redirect is the answer: what is behind it was not asked for."""

    def redirect_request(self, *_: Any) -> None:
        return None


def check_url(url: str) -> str:
    """The URL, if it can be asked.

    Raises:
        ValueError: another scheme, no host, or a password in it.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no URL to ask; expected one such as https://api.example/v1/items")
    if parts.username or parts.password:
        raise ValueError("the URL holds a password, which reports would show; expected --header 'Authorization: …'")
    _ = parts.port  # a ValueError that names it
    return url


def ask(
    url: str,
    count: int,
    headers: Sequence[tuple[str, str]],
    timeout: float,
    *,
    text: str | None = None,
    assume_limit: bool = False,
) -> Iterator[Answer]:
    """Send GET, or POST with ``text``, up to ``count`` times, one after another.

    A refusal is the last answer: its wait is kept by not going on.

    Args:
        url: what ``check_url`` accepts.
        count: from 1 to ``MOST``.
        headers: fields to send besides.
        timeout: seconds for each answer as a whole.
        text: a body; ``application/json`` where it is JSON, unless ``headers`` say otherwise.
        assume_limit: see ``Answer``.

    Raises:
        OSError: no answer.
    """
    opener = urllib.request.build_opener(_StayHere)
    html = any(name.lower() == "accept" and "text/html" in value.lower() for name, value in headers)
    own = {"User-Agent": f"headway-lint/{version('headway')}"}
    if text is not None:
        own["Content-Type"] = _media_type(text)
    body_sent = None if text is None else text.encode()
    for number in range(1, count + 1):
        request = urllib.request.Request(url, body_sent, own)  # noqa: S310  # check_url
        for name, value in headers:
            request.add_header(name, value)
        status, fields, body = _answer(opener, request, timeout)
        now = datetime.now(UTC)
        heard = read(status, fields, body, received_at=now)
        place = Place(url, None, f"answer {number}" if count > 1 else "")
        yield Answer(status, fields, body, place, heard, now, url, html, assume_limit)
        if heard is not None or status >= 400:
            return


def _media_type(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "application/x-www-form-urlencoded"
    return "application/json"


def _answer(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float
) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """The answer: all that came of it within ``timeout``, whatever the server trickles.

    A socket's own timeout begins anew with every byte, so a thread reads, and what it has not heard in time is left.
    """
    heard: SimpleQueue[_Head | bytes | OSError | None] = SimpleQueue()
    enough = Event()
    ends = time.monotonic() + timeout
    Thread(target=_fetch, args=(opener, request, timeout, heard, enough), daemon=True).start()
    try:
        head = _next(heard, ends)
        if not isinstance(head, tuple):
            raise head if isinstance(head, OSError) else OSError(f"the answer had not come after {timeout:g} s")
        body = bytearray()
        while isinstance(piece := _next(heard, ends), bytes):
            body += piece
    finally:
        enough.set()
    return *head, bytes(body[:_LONGEST_BODY])


def _next(heard: SimpleQueue[_Head | bytes | OSError | None], ends: float) -> _Head | bytes | OSError | None:
    """What was heard next; None at the end, or where time has run out."""
    try:
        return heard.get(timeout=max(0.0, ends - time.monotonic()))
    except Empty:
        return None


def _fetch(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    timeout: float,
    heard: SimpleQueue[_Head | bytes | OSError | None],
    enough: Event,
) -> None:
    """Hear the status and fields, pieces of the body until ``enough`` is set, and None; or the error instead."""
    response: Any  # an HTTPResponse, or the HTTPError that urllib makes of one; both have what is asked for here
    try:
        response = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        response = error
    except (OSError, HTTPException, ValueError) as error:
        heard.put(_no_answer(error))
        return
    with response:
        fields = tuple((str(name), str(value)) for name, value in response.headers.items())
        heard.put((int(response.status), fields))
        length = 0
        with suppress(HTTPException, OSError, ValueError):  # cut short; what the fields say is known
            while length < _LONGEST_BODY and not enough.is_set() and (piece := response.read1(_LONGEST_BODY)):
                length += len(piece)
                heard.put(piece)
        heard.put(None)


def _no_answer(error: Exception) -> OSError:
    """What urllib says of an answer that did not come, or that is none."""
    match error:
        case urllib.error.URLError():
            return OSError(str(error.reason))
        case OSError():
            return error
    return OSError(f"no HTTP answer: {error!r}")
