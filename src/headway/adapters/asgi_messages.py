"""ASGI's own words: a scope as request facts, and an answer as messages. It decides nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

from headway.adapters.asked import FORWARDED, Asked
from headway.adapters.cors import ALLOWS, EXPOSES, ORIGIN
from headway.adapters.ledger import Ledger, exposed
from headway.adapters.routes import NOWHERE, Place
from headway.policy.request import RequestFacts
from headway.presentation.fields import Fields
from headway.presentation.response import Response

__all__ = [
    "ASGIApp",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "asked_of",
    "close",
    "deny",
    "facts_of",
    "size_of",
    "text_fields",
    "with_fields",
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_DENIAL: Final = "websocket.http.response"
"""The extension with which a server lets a handshake be answered in full."""

_LONGEST_REASON: Final = 123
"""Bytes; RFC 6455 §5.5: a control frame holds 125, and the close code takes two."""

_ORIGIN: Final = ORIGIN.encode()
_ALLOWS: Final = ALLOWS.encode()
_EXPOSES: Final = EXPOSES.encode()
_FORWARDED: Final = tuple(name.encode() for name in FORWARDED)


def asked_of(scope: Scope, place: Place = NOWHERE) -> Asked:
    """A scope as a guard looks at it."""
    forwarded = False
    for name, _ in scope["headers"]:
        if name in _FORWARDED:
            forwarded = True
    client = scope.get("client")
    path, root = scope["path"], scope.get("root_path")
    if root and path.startswith(root):
        path = path[len(root) :] or "/"
    method = scope.get("method", "GET")  # a handshake is a GET
    return Asked(method, path, client[0] if client else None, forwarded, lambda: facts_of(scope, place))


def facts_of(scope: Scope, place: Place = NOWHERE) -> RequestFacts:
    """Everything that a scope says of an HTTP request or a handshake."""
    client = scope.get("client")
    query = scope.get("query_string", b"")
    return RequestFacts(
        method=scope.get("method", "GET"),
        route=place.route,
        path=scope["path"],
        headers=text_fields(scope["headers"]),
        path_params=place.path_params,
        query=dict(reversed(parse_qsl(query.decode("latin-1"), keep_blank_values=True))) if query else {},
        peer=client[0] if client else None,
    )


def text_fields(headers: Any) -> Fields:
    """Header fields as text."""
    return tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])


def size_of(message: Message) -> int:
    """Bytes of a body's part, or of a WebSocket's message."""
    text = message.get("text")
    return len(text.encode()) if text else len(message.get("body") or message.get("bytes") or b"")


def with_fields(message: Message, ledger: Ledger, scope: Scope) -> Message:
    """The message that begins the application's answer, with the ledger's fields in place of its own of that name."""
    sent = ledger.fields()
    if not sent:
        return message
    ours = _encoded(sent)
    names = {name for name, _ in ours}
    asked = False
    for name, _ in scope["headers"]:  # quicker than any(), and every answer asks
        if name == _ORIGIN:
            asked = True
    answers = asked
    headers = []
    for pair in message.get("headers") or ():
        name = pair[0].lower()
        answers = answers or name == _ALLOWS
        if name not in names:
            headers.append(pair)
    if answers:
        exposure = exposed(sent, [(name.lower(), value) for name, value in text_fields(headers)], asked=asked)[-1:]
        headers = [pair for pair in headers if pair[0].lower() != _EXPOSES]
        ours = [*ours, *_encoded(exposure)]
    return {**message, "headers": headers + ours}


async def deny(scope: Scope, send: Send, response: Response, reason: str, code: int) -> None:
    """Answer instead of the application: a request in full, a handshake in full where the server can do that.

    Args:
        scope: the connection's; a WebSocket that was not accepted.
        send: the server's.
        response: the answer.
        reason: a sentence, for a server that can only close.
        code: the close code, for the same.
    """
    if scope["type"] == "http":
        prefix = "http.response"
    elif _DENIAL in (scope.get("extensions") or {}):
        prefix = _DENIAL
    else:
        await close(send, reason, code)
        return
    await send({"type": f"{prefix}.start", "status": response.status, "headers": _encoded(response.headers)})
    await send({"type": f"{prefix}.body", "body": response.body})


async def close(send: Send, reason: str, code: int) -> None:
    """Close a WebSocket, saying why."""
    short = reason.encode("utf-8", "replace")[:_LONGEST_REASON].decode("utf-8", "ignore")
    await send({"type": "websocket.close", "code": code, "reason": short})


def _encoded(sent: Fields) -> list[tuple[bytes, bytes]]:
    return [(_name(name), value.encode("latin-1", "replace")) for name, value in sent]


@lru_cache(maxsize=256)
def _name(name: str) -> bytes:
    return name.lower().encode("latin-1")
