"""``POST /chat``: a prompt, the most tokens its answer may have, and whether it shall be streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from examples.llm_budget.budget import LONGEST_ANSWER_S, budget, settled
from examples.llm_budget.model import count_tokens, generate
from headway.presentation.response import respond
from headway.stores.base import AsyncStore

Model = Callable[[str, int], AsyncIterator[str]]
"""From a prompt and the most tokens to the answer's tokens."""

_MOST_TOKENS = 100_000
_LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class Ask:
    """What a caller asks for.

    Attributes:
        prompt: its text.
        max_tokens: the most tokens of the answer.
        stream: as it comes, as plain text.
    """

    prompt: str
    max_tokens: int
    stream: bool

    @classmethod
    def of(cls, body: Any) -> Ask:
        """From a JSON value.

        Raises:
            ValueError: names the member, and what is accepted.
        """
        if not isinstance(body, dict):
            raise ValueError('expected a JSON object such as {"prompt": "Hello", "max_tokens": 100}')
        prompt, most, stream = body.get("prompt"), body.get("max_tokens", 256), body.get("stream", False)
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError(f"prompt is {prompt!r}; expected text")
        if type(most) is not int or not 1 <= most <= _MOST_TOKENS:
            raise ValueError(f"max_tokens is {most!r}; expected a whole number from 1 to {_MOST_TOKENS}")
        return cls(prompt, most, stream is True)


class App:
    """The handler."""

    def __init__(self, store: AsyncStore | str, model: Model = generate) -> None:
        self._budget = budget(store)
        self._model = model

    async def chat(self, request: Request) -> Response:
        """Answer, if the estimate fits the budget: the prompt's tokens and the most that the answer may have."""
        key = request.headers.get("x-api-key", "")[:_LONGEST_KEY]
        if not key:
            return JSONResponse({"detail": "Send an API key in the header X-Api-Key."}, 401)
        try:
            ask = Ask.of(await request.json())
        except ValueError as error:
            return JSONResponse({"detail": str(error)}, 400)
        asked = count_tokens(ask.prompt)
        reservation = await self._budget.reserve(key=key, cost=asked + ask.max_tokens, ttl=LONGEST_ANSWER_S)
        answer = respond(reservation.decision.verdict, accept=request.headers.get("accept"), method=request.method)
        if not reservation.allowed:
            return Response(answer.body, answer.status, dict(answer.headers))
        used: list[int] = []
        tokens = settled(self._model(ask.prompt, ask.max_tokens), asked, reservation, used)
        if ask.stream:
            return StreamingResponse(_lines(tokens), headers=dict(answer.headers), media_type="text/plain")
        async with aclosing(tokens) as all_tokens:  # type: ignore[type-var]  # a generator has aclose
            text = " ".join([token async for token in all_tokens])
        body = {"answer": text, "usage": {"reserved": asked + ask.max_tokens, "used": used[0]}}
        return JSONResponse(body, headers=dict(answer.headers))


def create_app(store: AsyncStore | str, model: Model = generate) -> Starlette:
    """The application."""
    return Starlette(routes=[Route("/chat", App(store, model).chat, methods=["POST"])])


async def _lines(tokens: AsyncIterator[str]) -> AsyncIterator[str]:
    async with aclosing(tokens) as all_tokens:  # type: ignore[type-var]  # a generator has aclose
        async for token in all_tokens:
            yield f"{token}\n"
