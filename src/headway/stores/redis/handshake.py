"""What is said on a new connection before anything else, and the TLS context; shared by both kinds of connection."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from headway.errors import StoreError, StoreUnavailable, StoreUnusable
from headway.stores.breaker import Breaker
from headway.stores.redis.resp import Failed, Reply, Unreadable, command
from headway.stores.redis.settings import Node, Settings, Tls

__all__ = [
    "LOOK",
    "STRANGE",
    "context_of",
    "greeting",
    "is_full",
    "judge",
    "no_name",
    "problem_of",
    "reason_of",
    "unlike",
    "warn_of_eviction",
]

_NOT_OURS = ("NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE")
"""Errors that no waiting mends: somebody has to change a setting."""

_AWAY = ("LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN")
"""Errors of a server that cannot serve for a while. One that only cannot write (OOM, MISCONF, NOREPLICAS) still refuses."""

_FULL = ("OOM", "MISCONF", "NOREPLICAS")
"""Errors of one that only cannot write: a script says so at its first write, so nothing was."""

_SENT_ON = ("NOSCRIPT", "MOVED", "ASK", "TRYAGAIN")
"""Errors that say what to do instead."""

_PLACE: Final = re.compile(
    r"^ERR Error running script .*?: (?:@user_script: ?\d+: )+-?| script: (?:[0-9a-f]{40}, )?on @user_script:.*$",
    re.DOTALL,
)


def greeting(settings: Settings, credentials: Sequence[str] | None) -> list[bytes]:
    """The commands, each of which has to be answered without an error.

    Args:
        settings: of the server.
        credentials: what ``settings.credentials`` said, or None.
    """
    user, password = settings.username, settings.password
    if credentials is not None:
        user, password = (credentials[0], credentials[1]) if len(credentials) > 1 else ("", credentials[0])
    login = [] if password is None else [user.encode() or b"default", password.encode()]
    commands = []
    if settings.protocol == 3:
        commands.append(command(b"HELLO", b"3", *([b"AUTH", *login] if login else [])))
    elif login:
        commands.append(command(b"AUTH", *(login if user else login[1:])))
    if settings.db:
        commands.append(command(b"SELECT", b"%d" % settings.db))
    return commands


def problem_of(where: object, reply: Failed | Unreadable) -> StoreError:
    """The exception that an error reply stands for."""
    if isinstance(reply, Unreadable):
        return StoreUnusable(f"Redis store {where}: answered {reply.head!r}, which is not the Redis protocol")
    text = _PLACE.sub("", reply.text)  # where it is in the script is nothing to a reader
    if reply.kind in _NOT_OURS or text.startswith(("ERR unknown command", "ERR invalid password", "ERR DB index")):
        return StoreUnusable(f"Redis store {where}: {text}")
    problem = StoreUnavailable(f"Redis store {where}: {text}")
    problem.is_full = reply.kind in _FULL  # type: ignore[attr-defined]  # see is_full
    return problem


def is_full(reply: object) -> bool:
    """Whether a script failed because it had to write, and nothing of it was done."""
    return isinstance(reply, StoreUnavailable) and getattr(reply, "is_full", False)


STRANGE: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""What comes of reading an answer as something that it is not."""


def unlike(where: object, reply: object) -> StoreUnusable:
    """The exception of an answer that no Redis gives to what was asked."""
    return StoreUnusable(f"Redis store {where}: answered {repr(reply)[:80]}, which is no answer to what was asked")


def reason_of(error: OSError, deadline: float) -> str:
    """Why there was no answer, in the words of the system."""
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline:g} s"
    if isinstance(error, ssl.SSLError | socket.gaierror):  # their numbers are not the system's
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or type(error).__name__


def no_name(node: Node, error: ValueError) -> OSError:
    """What a name that cannot be one is: an address that nobody has."""
    return OSError(f"{node.host[:80]!r} is no name of a host ({error})")


def judge(breaker: Breaker, node: object, heard: Sequence[object]) -> None:
    """Tell a breaker what became of a trip: a server that answers, but cannot serve now, is as good as away."""
    failed = [reply for reply in heard if isinstance(reply, Failed)]
    for reply in failed:
        if reply.kind in _AWAY:
            breaker.failed(problem_of(node, reply))
            return
    for reply in failed:
        if reply.kind not in _SENT_ON:
            breaker.answered(problem_of(node, reply))
            return
    breaker.succeeded()


LOOK: Final = command(b"INFO", b"memory")
"""Asked once of each server, on its first connection."""


def warn_of_eviction(node: object, heard: Reply) -> None:
    """Log one warning if the server may throw away keys that still owe; what it does not tell is not asked again.

    Raises:
        StoreUnusable: it does not speak the protocol.
    """
    if isinstance(heard, Unreadable):
        raise problem_of(node, heard)
    if not isinstance(heard, bytes):
        return
    told = dict(line.split(":", 1) for line in heard.decode("utf-8", "replace").splitlines() if ":" in line)
    policy = told.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and told.get("maxmemory", "0") != "0":
        import logging  # slow to import, and most servers keep what they are given

        logging.getLogger("headway.stores").warning(
            "Redis store %s evicts keys (maxmemory-policy %s): a caller whose key is evicted gets its whole quota again; "
            "give limits a server with maxmemory-policy noeviction",
            node,
            policy,
        )


def context_of(tls: Tls) -> ssl.SSLContext:
    """The TLS context; the system's certificates unless others are named."""
    context = ssl.create_default_context(cafile=tls.ca_certs, capath=tls.ca_path, cadata=tls.ca_text)
    if tls.min_version is not None:
        context.minimum_version = ssl.TLSVersion(tls.min_version)
    if not (tls.verify and tls.check_hostname):
        context.check_hostname = False
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    if tls.certfile:
        context.load_cert_chain(tls.certfile, tls.keyfile, tls.password or "")  # None would ask at the terminal
    return context
