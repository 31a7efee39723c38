"""Requests and tokens per minute together: an estimate is charged before a call, the bill's tokens after it.

    python chat.py --api https://llm.example.com/v1 --requests 500/min --tokens 90000/min prompts.txt

The service counts both; whoever sends a long prompt waits for tokens, whoever sends many waits for requests. Several
processes share the budget in a file, and what the service says is left lowers it for all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import httpx

from headway.client import read
from headway.client.attempt import Reply
from headway.client.pace import AsyncPace
from headway.client.retry import Retry
from headway.client.transport_httpx import AsyncPatientTransport
from headway.errors import DeadlineTooSoon, RateLimitedError

LONGEST_ANSWER = 200
"""Tokens that an answer may have; the estimate has to hold them all."""


def estimate(prompt: str) -> int:
    """Tokens that a call may cost at most: about one for three characters, and the longest answer."""
    return len(prompt) // 3 + 1 + LONGEST_ANSWER


class Chat:
    """A client that keeps to both quotas.

    Args:
        client: sends with patience, without a pace: the pace is asked here, where the tokens are known.
        pace: of "requests" and "tokens".
        api: where.
    """

    def __init__(self, client: httpx.AsyncClient, pace: AsyncPace, api: str) -> None:
        self.client = client
        self.pace = pace
        self.api = api

    async def ask(self, prompt: str) -> str:
        """One answer.

        Raises:
            RateLimitedError: the service refuses, and no wait in time helps.
            DeadlineTooSoon: the budget has no room in time.
        """
        body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": LONGEST_ANSWER}
        async with self.pace.slot(cost={"tokens": estimate(prompt)}, deadline=self.deadline) as slot:
            answer = await self.client.post(f"{self.api}/chat/completions", json=body)
            answer.raise_for_status()
            told: dict[str, Any] = answer.json()
            reply = Reply(answer.status_code, answer.headers, None, answer)
            await slot.complete(reply, cost={"tokens": int(told["usage"]["total_tokens"])})
        return str(told["choices"][0]["message"]["content"])

    deadline = 300.0
    """Seconds that one call may wait for the budget."""


async def answers(chat: Chat, prompts: list[str]) -> list[str]:
    """All answers, in the order of the prompts, as quickly as the quotas allow."""
    return list(await asyncio.gather(*map(chat.ask, prompts)))


def main(arguments: list[str] | None = None, **options: Any) -> int:
    """Answer a file of prompts; 75 when the quotas have no room in time.

    Args:
        arguments: the command line's.
        options: ``timer`` and ``store`` (tests give it a clock).
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prompts", type=Path, help="a file with a prompt a line")
    parser.add_argument("--api", required=True)
    parser.add_argument("--requests", default="500/min")
    parser.add_argument("--tokens", default="90000/min")
    parser.add_argument("--budget", type=Path, default=Path("budget.db"), help="the file that shares the budget")
    args = parser.parse_args(arguments)
    prompts = [line for line in args.prompts.read_text().splitlines() if line]
    timer = options.get("timer")
    store = options.get("store") or f"sqlite:///{args.budget.absolute()}"

    async def run() -> list[str]:
        quotas = {"requests": args.requests, "tokens": args.tokens}
        transport = AsyncPatientTransport(retry=Retry(deadline=Chat.deadline), timer=timer)
        async with (
            AsyncPace(quotas, store=store, name="llm", timer=timer) as pace,
            httpx.AsyncClient(transport=transport, timeout=60) as client,
        ):
            return await answers(Chat(client, pace, args.api), prompts)

    try:
        for answer in asyncio.run(run()):
            print(answer)
    except (DeadlineTooSoon, RateLimitedError) as error:
        print(error, file=sys.stderr)
        return 75
    except httpx.HTTPStatusError as error:
        refused = read(error.response.status_code, error.response.headers, error.response.content)
        print(refused.sentence() if refused else error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
