"""ASGI's own words: a scope as request facts, and an answer as messages. It decides nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

from headway.adapters.cors import ALLOWS, ORIGIN
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
    "asks_from_elsewhere",
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


def facts_of(scope: Scope, place: Place = NOWHERE, *, plain: bool = False) -> RequestFacts:
    """What a scope says of the request.

    Args:
        scope: of an HTTP request or a WebSocket.
        place: where it goes.
        plain: nobody asks for more than the address and the method, so the query is not read.
    """
    client = scope.get("client")
    root, path = scope.get("root_path", ""), scope["path"]
    if root and path.startswith(root):
        path = path[len(root) :] or "/"
    query = b"" if plain else scope.get("query_string", b"")
    return RequestFacts(
        method=scope.get("method", "GET"),  # a handshake is a GET
        route=place.route,
        path=path,
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


def asks_from_elsewhere(scope: Scope) -> bool:
    """A browser asks for a page of another site."""
    return any(name == _ORIGIN for name, _ in scope["headers"])


def with_fields(message: Message, ledger: Ledger, *, asked: bool) -> Message:
    """The message that begins the application's answer, with the ledger's fields in place of its own of that name."""
    sent = ledger.fields()
    if not sent:
        return message
    headers = message.get("headers") or ()
    if asked or any(name == _ALLOWS for name, _ in headers):
        sent = exposed(sent, [(name.lower(), value) for name, value in text_fields(headers)], asked=asked)
    ours = _encoded(sent)
    names = {name for name, _ in ours}
    return {**message, "headers": [*(pair for pair in headers if pair[0].lower() not in names), *ours]}


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
