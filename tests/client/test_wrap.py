"""Patience for functions and blocks: exceptions of SDKs are read by their shape. Look-alikes stand for the SDKs."""

from __future__ import annotations

import asyncio
import io
import urllib.error
from collections.abc import Callable
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import requests

from headway import MemoryStore
from headway.client.exceptions import reply_in
from headway.client.pace import AsyncPace, Pace
from headway.client.reading import read
from headway.client.retry import Retry
from headway.client.wrap import attempts, patient
from headway.errors import RateLimitedError
from headway.testing import ManualClock

WAIT = {"retry-after": "7"}
LIMITED = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}


def an_error(name: str, base: type[Exception] = Exception, **fields: Any) -> Exception:
    """An exception of that name with these attributes."""
    return type(name, (base,), fields)("refused")


def openai_error() -> Exception:
    """Openai and anthropic: an httpx response, and the parsed body."""
    response = httpx.Response(429, headers=WAIT, json=LIMITED, request=httpx.Request("POST", "https://a.example/"))
    return an_error("RateLimitError", status_code=429, response=response, body=LIMITED["error"])


def botocore_error() -> Exception:
    """botocore: everything in a dict."""
    metadata = {"HTTPStatusCode": 400, "HTTPHeaders": {"retry-after": "7"}, "RetryAttempts": 0}
    response = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}, "ResponseMetadata": metadata}
    return an_error("ClientError", response=response, operation_name="ListThings")


def grpc_error() -> Exception:
    """Grpc: code and trailers are methods."""
    code = SimpleNamespace(value=(8, "resource exhausted"), name="RESOURCE_EXHAUSTED")
    trailers = (("grpc-retry-pushback-ms", "7000"), ("grpc-status-details-bin", b"\x08\x08"))
    return an_error(
        "RpcError",
        code=lambda self: code,
        details=lambda self: "quota of requests per minute exceeded",
        trailing_metadata=lambda self: trailers,
    )


def google_error() -> Exception:
    """google-api-core over gRPC: the call's error is its response; its own code is the HTTP one."""
    return an_error("ResourceExhausted", code=429, response=grpc_error(), errors=(), details=[])


def google_rest_error() -> Exception:
    """google-api-core over REST: a requests response."""
    return an_error("TooManyRequests", code=429, response=requests_response(), errors=[{"reason": "rateLimitExceeded"}])


def google_client_error() -> Exception:
    """google-api-python-client: httplib2's response is a mapping of fields with a status."""
    resp = type("Response", (dict,), {"status": 403})({"retry-after": "7", "status": "403"})
    body = b'{"error": {"code": 403, "errors": [{"reason": "userRateLimitExceeded"}]}}'
    return an_error("HttpError", resp=resp, content=body)


def github_error() -> Exception:
    """PyGithub: status, parsed data and fields."""
    data = {"message": "API rate limit exceeded for user ID 1."}
    return an_error("RateLimitExceededException", status=403, data=data, headers=WAIT)


def requests_response() -> requests.Response:
    """A response of requests that was read."""
    response = requests.Response()
    response.status_code, response._content = 429, b"slow down"
    response.headers["Retry-After"] = "7"
    return response


def requests_error() -> Exception:
    """Requests: what raise_for_status raises."""
    return requests.HTTPError("429", response=requests_response())


def aiohttp_error() -> Exception:
    """aiohttp: status and fields without a body."""
    return an_error("ClientResponseError", status=429, headers=WAIT, message="Too Many Requests")


def stripe_error() -> Exception:
    """Stripe: its own names."""
    return an_error("RateLimitError", http_status=429, http_body='{"error": {"code": "rate_limit"}}', headers=WAIT)


def urllib_error() -> Exception:
    """urllib: a body that can be read once."""
    fields = Message()
    fields["Retry-After"] = "7"
    return urllib.error.HTTPError("http://a.example/", 429, "Too Many Requests", fields, io.BytesIO(b"slow down"))


def wrapped_error() -> Exception:
    """An error raised from one that knows."""
    error = ValueError("could not load")
    error.__cause__ = requests_error()
    return error


def telegram_error() -> Exception:
    """python-telegram-bot and others: nothing but the wait."""
    return an_error("RetryAfter", retry_after=timedelta(seconds=7))


def discord_error() -> Exception:
    """discord.py: the wait, as a float of seconds."""
    return an_error("RateLimited", retry_after=7.0)


ERRORS: list[Callable[[], Exception]] = [
    openai_error,
    botocore_error,
    grpc_error,
    google_error,
    google_rest_error,
    google_client_error,
    github_error,
    requests_error,
    aiohttp_error,
    stripe_error,
    urllib_error,
    wrapped_error,
    telegram_error,
    discord_error,
]


class Flaky:
    """Raises each of the errors once, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, *args: object) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize("make", ERRORS)
def test_every_sdk_s_exception_is_read(make: Callable[[], Exception]) -> None:
    """Status, fields and body are found whatever the SDK calls them: each is a rate limit with its seven seconds."""
    reply = reply_in(make())
    assert reply is not None
    rejection = read(reply.status, reply.headers, reply.body, received_at=0)
    assert rejection is not None
    assert (rejection.kind, rejection.retry_after) == ("rate_limited", 7)


@pytest.mark.parametrize("make", ERRORS)
def test_refused_calls_are_made_again(make: Callable[[], Exception], clock: ManualClock) -> None:
    """Two refusals of seven seconds each, then the result; what the SDK raised never reaches the caller."""
    flaky, start = Flaky(make(), make()), clock.now
    assert patient(timer=clock, repeatable=True)(flaky.__call__)() == "done"
    assert 14 <= (clock.now - start) / 1e9 <= 16


def test_a_bare_status_is_enough(clock: ManualClock) -> None:
    """An exception with a status and nothing else is read by it: 429 backs off, 404 comes out as it is."""
    flaky = Flaky(an_error("TooMany", status=429), an_error("TooMany", status_code=429))
    assert patient(timer=clock)(flaky.__call__)() == "done"
    missing = an_error("NotFound", status=404)
    with pytest.raises(Exception, match="refused") as caught:
        patient(timer=clock)(Flaky(missing).__call__)()
    assert caught.value is missing


@pytest.mark.parametrize("error", [ValueError("x"), KeyError(3), an_error("Odd", status="429", response=None, code=7)])
def test_other_exceptions_come_out_as_they_are(error: Exception, clock: ManualClock) -> None:
    """What is no refusal is the very object the function raised, at once."""
    flaky = Flaky(error)
    with pytest.raises(type(error)) as caught:
        patient(timer=clock)(flaky.__call__)()
    assert caught.value is error
    assert flaky.calls == 1


def test_what_waiting_does_not_lift_comes_out_as_it_is(clock: ManualClock) -> None:
    """A 403 that says forbidden is the SDK's own error."""
    error = an_error("PermissionDenied", status=403, data={"error": "forbidden"}, headers={})
    with pytest.raises(Exception, match="refused") as caught:
        patient(timer=clock)(Flaky(error).__call__)()
    assert caught.value is error


def test_the_final_failure_comes_from_the_last_exception(clock: ManualClock) -> None:
    """Given up, the SDK's exception is the cause, and its response and body are at hand."""
    errors = [requests_error() for _ in range(3)]
    with pytest.raises(RateLimitedError, match="Try again in 7 seconds") as caught:
        patient(timer=clock, retry=Retry(attempts=3))(Flaky(*errors).__call__)()
    assert caught.value.__cause__ is errors[2]
    assert caught.value.response is errors[2].response  # type: ignore[attr-defined]
    assert caught.value.body == b"slow down"
    assert len(caught.value.history) == 3


def test_urllib_s_body_can_still_be_read(clock: ManualClock) -> None:
    """Reading a body to decide leaves it to the caller."""
    error = urllib_error()
    with pytest.raises(RateLimitedError) as caught:
        patient(timer=clock, retry=Retry(attempts=1))(Flaky(error).__call__)()
    assert caught.value.body == b"slow down"
    assert error.read() == b"slow down"  # type: ignore[attr-defined]


def test_returned_responses_are_read_too(clock: ManualClock) -> None:
    """A function that returns responses instead of raising is as good."""
    answers = [requests_response(), requests_response(), "anything else"]

    @patient(timer=clock)
    def fetch() -> object:
        return answers.pop(0)

    start = clock.now
    assert fetch() == "anything else"
    assert 14 <= (clock.now - start) / 1e9 <= 16


def test_only_what_may_be_repeated_is(clock: ManualClock) -> None:
    """A 503 or a broken connection is only tried again where the function may be called twice."""
    down = an_error("Unavailable", status=503, headers=WAIT)
    retry = Retry(connection_errors=True)
    with pytest.raises(RateLimitedError, match="twice"):
        patient(timer=clock)(Flaky(down).__call__)()
    with pytest.raises(ConnectionError):
        patient(timer=clock, retry=retry)(Flaky(ConnectionError("reset")).__call__)()
    flaky = Flaky(down, ConnectionError("reset"), TimeoutError("late"))
    assert patient(timer=clock, retry=retry, repeatable=True)(flaky.__call__)() == "done"


def test_a_pace_is_asked_with_the_call_s_arguments(clock: ManualClock) -> None:
    """Key and cost may be functions of the arguments."""
    pace = Pace({"tokens": "100/min"}, by="model", store=MemoryStore(clock=clock))
    when: list[tuple[str, int]] = []

    @patient(
        timer=clock,
        pace=pace,
        attributes=lambda call: {"model": call["model"]},
        cost=lambda call: {"tokens": call["tokens"]},
    )
    def complete(model: str, tokens: int) -> None:
        when.append((model, round((clock.now / 1e9) - 1_800_000_000)))

    for model, tokens in (("a", 60), ("b", 60), ("a", 60)):
        complete(model, tokens)
    assert when == [("a", 0), ("b", 0), ("a", 60)]


def test_async_functions_are_awaited(clock: ManualClock) -> None:
    """``async def`` waits without blocking, with an ``AsyncPace``."""
    errors = [openai_error(), github_error()]

    @patient(timer=clock, pace=AsyncPace("5/s", store=MemoryStore(clock=clock)))
    async def call() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    start = clock.now
    assert asyncio.run(call()) == "done"
    assert (clock.now - start) / 1e9 >= 14
    assert call.__name__ == "call"


def test_a_block_is_tried_again(clock: ManualClock) -> None:
    """The loop ends with the first attempt that succeeds; its number says how many there were."""
    flaky, numbers, start = Flaky(openai_error(), requests_error()), [], clock.now
    for attempt in attempts(timer=clock, pace=Pace("9/s", store=MemoryStore(clock=clock))):
        with attempt:
            numbers.append(attempt.number)
            flaky()
    assert numbers == [1, 2, 3]
    assert (clock.now - start) / 1e9 >= 14


def test_an_async_block_is_tried_again(clock: ManualClock) -> None:
    """The same with ``async for`` and ``async with``, and with a response that is set, not raised."""
    answers = [requests_response(), None]

    async def main() -> int:
        number = 0
        async for attempt in attempts(timer=clock):
            async with attempt:
                attempt.response = answers.pop(0)
                number = attempt.number
        return number

    assert asyncio.run(main()) == 2


def test_a_block_s_other_exceptions_come_out(clock: ManualClock) -> None:
    """What is no refusal leaves the loop as it is; the final failure comes out of the loop."""
    error = ValueError("x")
    with pytest.raises(ValueError, match="x") as caught:
        for attempt in attempts(timer=clock):
            with attempt:
                raise error
    assert caught.value is error
    with pytest.raises(RateLimitedError):
        for attempt in attempts(timer=clock, retry=Retry(attempts=2)):
            with attempt:
                raise requests_error()


def test_leaving_a_loop_gives_back_what_it_holds(clock: ManualClock) -> None:
    """A ``break`` or an error inside the block ends the lease at once."""
    pace = Pace("1 at once for 60 s", store=MemoryStore(clock=clock))
    for attempt in attempts(pace=pace, timer=clock):
        with attempt:
            break
    with pytest.raises(ValueError, match="x"):
        for attempt in attempts(pace=pace, timer=clock):
            with attempt:
                raise ValueError("x")
    pace.acquire(deadline=0)


def test_an_attempt_that_is_not_made_is_a_mistake(clock: ManualClock) -> None:
    """A loop whose body leaves out ``with attempt:`` says what to write."""
    with pytest.raises(RuntimeError, match="with attempt:"):
        for _ in attempts(timer=clock):
            pass
