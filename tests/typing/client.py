"""Patient clients as a user writes them, for type checkers; never run."""

from __future__ import annotations

import httpx
import requests

from headway import DeadlineTooSoon, Decision, RateLimitedError
from headway.client import AsyncPace, Pace, Rejection, Retry, Slot, attempts, patient
from headway.client.transport_httpx import AsyncPatientTransport, PatientTransport
from headway.client.transport_requests import PatientAdapter


@patient
def plain(number: int) -> str:
    """A function keeps its types."""
    return str(number)


@patient(retry=Retry(deadline=10), pace=Pace("5/s"), cost=lambda call: {"tokens": call["number"]})
async def asynchronous(number: int) -> str:
    """So does an asynchronous one."""
    return str(number)


def use() -> None:
    """Pacing, transports and errors."""
    pace = Pace("5/s", {"tokens": "90000/min"}, by=("host", "account"))
    decision: Decision = pace.wait(host="a", account=1, deadline=5, cost={"tokens": 3})
    with pace.slot({"host": "a", "account": 1}) as slot:
        held: Slot = slot
        slot.complete(cost={"tokens": 7})
    text: str = plain(1)
    for attempt in attempts(Retry(), pace):
        with attempt:
            attempt.response = requests.get("https://a.example", timeout=1)
    requests.Session().mount("https://", PatientAdapter(Retry(), pace))
    with httpx.Client(transport=PatientTransport(retry=Retry(), pace=pace)) as client:
        try:
            client.get("https://a.example")
        except RateLimitedError as error:
            rejection: Rejection = error.rejection
            wait: float | None = error.retry_after
            print(rejection, wait)
        except DeadlineTooSoon as error:
            seconds: float = error.retry_after
            print(seconds)
    print(decision, held, text)


async def use_async() -> None:
    """The asynchronous twins."""
    pace = AsyncPace("5/s", by="host")
    async with pace.slot(host="a"), httpx.AsyncClient(transport=AsyncPatientTransport(pace=pace)) as client:
        await client.get("https://a.example")
    left: dict[str, int] = await pace.left(host="a")
    text: str = await asynchronous(1)
    print(left, text)
