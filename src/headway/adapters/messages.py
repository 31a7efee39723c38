"""``MessageLimits``: limits for the messages of a WebSocket, counted for whoever sends them, over all their sockets.

Pings and pongs never reach an application, so they are never counted, and what is sent to the client is not either.
"""

from __future__ import annotations

from typing import Any, Final, Unpack

from headway.adapters import routes
from headway.adapters.asgi import POLICY_VIOLATION, TRY_AGAIN_LATER
from headway.adapters.asgi_messages import Scope, Send, asked_of, close
from headway.adapters.drive import drive_async
from headway.adapters.guard import Guard, Options
from headway.adapters.ledger import Ledger
from headway.errors import ConfigError
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.decision import Decision
from headway.limiter.limiter import Limiter
from headway.limiter.plan import Cost

__all__ = ["MessageLimits"]

_CODES: Final = (POLICY_VIOLATION, TRY_AGAIN_LATER)


class MessageLimits:
    """Asks a limiter about each message: ``decision = await messages.hit(websocket)``.

    Args:
        limiter: an ``AsyncLimiter``, or a ``Limiter`` on a memory store.
        close_code: 1008 (a rule is broken) or 1013 (try again later): a refused message closes the socket with the
            sentence as its reason. None leaves it open: the application tells the client, and goes on receiving.
        options: see ``Options``; the framework's request is what ``hit`` is given.

    Raises:
        TypeError: a limiter that would block, or an unknown option.
        ConfigError: another code, or an option that cannot be right.
    """

    def __init__(
        self, limiter: AsyncLimiter | Limiter, *, close_code: int | None = None, **options: Unpack[Options]
    ) -> None:
        if close_code is not None and close_code not in _CODES:
            raise ConfigError(f"{close_code!r}; expected 1008, 1013 or None", key="close_code")
        for name in ("charge_if", "actual_cost", "probe_limiter"):
            if name in options:
                raise ConfigError("a message has no response to settle by, and is no probe", key=name)
        self.close_code = close_code
        self.guard = Guard(limiter, {"exempt_paths": (), **options}, where="MessageLimits", asynchronous=True)

    async def hit(self, websocket: Any, *, send: Send | None = None, cost: Cost | None = None) -> Decision:
        """Charge one message that was received.

        Args:
            websocket: a connection with ``scope`` and ``send`` (Starlette's, FastAPI's), or an ASGI scope.
            send: where ``websocket`` is a scope and the socket is to be closed.
            cost: units of this message, instead of the option's: its size, say.

        Returns:
            The decision; when it is refused and there is a ``close_code``, the socket is closed already.

        Raises:
            What ``Limiter.hit`` raises.
        """
        scope: Scope = getattr(websocket, "scope", websocket)
        guard, ledger = self.guard, Ledger()
        place = routes.place_of(scope.get("app"), scope) if guard.needs_route else routes.NOWHERE
        refusal = await drive_async(guard.ask(websocket, asked_of(scope, place), ledger, cost=cost))
        if refusal is None:
            return ledger.decisions[0] if ledger.entries else guard.skipped()
        if self.close_code is not None:
            await close(send or websocket.send, Decision.of(refusal).sentence(guard.locale), self.close_code)
        return Decision.of(refusal)
