"""The decorator and the context manager: signature kept, the decision raised, mistakes found when the function is made."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.core.limit import Limit
from headway.errors import LimitError, RateLimited
from headway.limiter.async_limiter import AsyncLimiter
from headway.limiter.limiter import Limiter
from headway.stores.memory import MemoryStore
from headway.testing.clock import ManualClock

PHONE = Limit("per-phone", "2 per 60s", by="phone")
TENANT = Limit("tenant", "100 per 60s", by=["tenant", "ip"])


@pytest.fixture
def limiter(clock: ManualClock) -> Limiter:
    return Limiter(PHONE, store=MemoryStore(clock=clock))


@pytest.fixture
def later(clock: ManualClock) -> AsyncLimiter:
    return AsyncLimiter(PHONE, store=MemoryStore(clock=clock))


def test_a_refused_call_raises_and_does_not_run(limiter: Limiter) -> None:
    """The function runs as often as the quota admits, and its key is the parameter of the attribute's name."""
    ran = []

    @limiter.limited
    def send(phone: str, text: str = "hi") -> int:
        ran.append((phone, text))
        return len(ran)

    assert send("1") == 1
    assert send(phone="1", text="x") == 2
    with pytest.raises(RateLimited) as caught:
        send("1")
    assert send("2") == 3
    assert ran == [("1", "hi"), ("1", "x"), ("2", "hi")]
    assert caught.value.decision.limit == "per-phone"
    assert caught.value.decision.retry_after == 30
    assert "30 seconds" in str(caught.value)


def test_signature_name_docstring_and_annotations_are_kept(limiter: Limiter, later: AsyncLimiter) -> None:
    """Frameworks that read a function's signature see the original one, sync or async."""

    def send(phone: str, /, text: str = "hi", *more: int, flag: bool = False, **rest: object) -> int:
        """Send it."""
        return 1

    async def send_later(phone: str, *, text: bytes) -> list[int]:
        """Send it later."""
        return [1]

    for original, limited in [(send, limiter.limited(send)), (send_later, later.limited(send_later))]:
        assert inspect.signature(limited) == inspect.signature(original)
        assert limited.__name__ == original.__name__
        assert limited.__qualname__ == original.__qualname__
        assert limited.__doc__ == original.__doc__
        assert limited.__module__ == original.__module__
        assert limited.__annotations__ == original.__annotations__
        assert inspect.iscoroutinefunction(limited) is inspect.iscoroutinefunction(original)


def test_attributes_can_come_from_other_parameters_or_be_worked_out(clock: ManualClock) -> None:
    """A parameter's name, or a function of all arguments with their defaults."""
    limiter = Limiter(TENANT, store=MemoryStore(clock=clock))

    @limiter.limited(tenant="account", ip=lambda call: call["request"]["ip"], cost=lambda call: call["units"])
    def work(request: dict[str, str], account: str = "anon", *, units: int = 7) -> str:
        return account

    assert work({"ip": "a"}) == "anon"
    assert work({"ip": "a"}, units=50) == "anon"
    assert limiter.peek(tenant="anon", ip="a", cost=0).remaining == 43
    with pytest.raises(RateLimited):
        work({"ip": "a"}, units=44)


def test_a_fixed_cost_may_be_given(limiter: Limiter) -> None:
    """``cost=2`` charges two units a call."""

    @limiter.limited(cost=2)
    def send(phone: str) -> None:
        return None

    send("1")
    assert limiter.peek(phone="1", cost=0).remaining == 0


def test_methods_are_limited_like_functions(limiter: Limiter) -> None:
    """``self`` is an argument like any other; static and class methods keep working."""

    class Sender:
        def __init__(self, phone: str) -> None:
            self.phone = phone

        @limiter.limited(phone=lambda call: call["self"].phone)
        def send(self) -> str:
            return self.phone

        @staticmethod
        @limiter.limited
        def static(phone: str) -> str:
            return phone

        @classmethod
        @limiter.limited
        def made(cls, phone: str) -> str:
            return cls.__name__ + phone

    sender = Sender("1")
    assert [sender.send(), Sender.static("1")] == ["1", "1"]
    with pytest.raises(RateLimited):
        sender.send()
    assert Sender.made("2") == "Sender2"


def test_an_attribute_that_nothing_gives_is_found_at_once(limiter: Limiter, later: AsyncLimiter) -> None:
    """The error comes when the function is decorated, and says which parameters there are."""
    with pytest.raises(
        LimitError, match=r"send\(\) has no parameter 'phone' to take the attribute 'phone' from; it has: number"
    ):

        @limiter.limited
        def send(number: str) -> None: ...

    with pytest.raises(LimitError, match="no parameter 'nubmer'"):

        @later.limited(phone="nubmer")
        async def send_later(number: str) -> None: ...


def test_wrong_arguments_are_the_functions_own_type_error_and_charge_nothing(limiter: Limiter) -> None:
    """A call that does not fit the signature fails as it would undecorated, before anything is charged."""

    @limiter.limited
    def send(phone: str) -> None: ...

    for call in (lambda: send(), lambda: send("1", "2"), lambda: send("1", nope=1)):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            call()
    assert limiter.peek(phone="1", cost=0).remaining == 2


def test_the_functions_own_errors_pass_through(limiter: Limiter) -> None:
    """What the function raises is not touched, and the charge stays: the call was admitted."""

    @limiter.limited
    def send(phone: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        send("1")
    assert limiter.peek(phone="1", cost=0).remaining == 1


def test_async_functions_are_awaited_and_limited(later: AsyncLimiter) -> None:
    """The check happens when the coroutine runs, not when it is made; a refusal raises from the await."""
    ran = []

    @later.limited
    async def send(phone: str) -> str:
        await asyncio.sleep(0)
        ran.append(phone)
        return phone

    async def main() -> None:
        unawaited = send("1")
        unawaited.close()
        assert await asyncio.gather(send("1"), send("1")) == ["1", "1"]
        with pytest.raises(RateLimited):
            await send("1")

    asyncio.run(main())
    assert ran == ["1", "1"]


def test_a_limiter_on_memory_takes_async_functions_too(limiter: Limiter) -> None:
    """It never waits, so it cannot block the loop."""

    @limiter.limited
    async def send(phone: str) -> str:
        return phone

    async def main() -> list[object]:
        return await asyncio.gather(*(send("1") for _ in range(4)), return_exceptions=True)

    answers = asyncio.run(main())
    assert answers[:2] == ["1", "1"]
    assert [type(answer) for answer in answers[2:]] == [RateLimited, RateLimited]


def test_the_wrong_limiter_for_a_function_is_named_at_once(tmp_path: Path, later: AsyncLimiter) -> None:
    """A store that waits would block the loop: AsyncLimiter is named; a plain function cannot wait: Limiter is named."""
    limiter = Limiter(PHONE, store=f"sqlite:///{tmp_path}/limits.db")
    with pytest.raises(TypeError, match="use AsyncLimiter"):

        @limiter.limited
        async def send_later(phone: str) -> None: ...

    with pytest.raises(TypeError, match="use Limiter"):

        @later.limited
        def send(phone: str) -> None: ...  # type: ignore[misc]

    limiter.close()


def test_generators_are_limited_when_they_are_called(limiter: Limiter) -> None:
    """A generator function keeps yielding; the third call is refused before anything is yielded."""

    @limiter.limited
    def lines(phone: str) -> Iterator[int]:
        yield from (1, 2)

    assert [list(lines("1")), list(lines("1"))] == [[1, 2], [1, 2]]
    with pytest.raises(RateLimited):
        lines("1")


def test_a_with_block_runs_only_if_admitted(limiter: Limiter) -> None:
    """The decision is the block's; a refusal raises before it."""
    with limiter.admitted(phone="1", cost=2) as decision:
        assert decision.remaining == 0
    ran = False
    with pytest.raises(RateLimited) as caught, limiter.admitted({"phone": "1"}):
        ran = True
    assert not ran
    assert caught.value.decision.retry_after == 30


def test_an_async_with_block_does_the_same(later: AsyncLimiter) -> None:
    """Also when the block raises: its own error comes out."""

    async def main() -> None:
        async with later.admitted(phone="1") as decision:
            assert decision.remaining == 1
        with pytest.raises(ZeroDivisionError):
            async with later.admitted(phone="1"):
                raise ZeroDivisionError
        with pytest.raises(RateLimited):
            async with later.admitted(phone="1"):
                raise AssertionError("must not run")

    asyncio.run(main())


def test_rate_limited_can_be_pickled(limiter: Limiter) -> None:
    """A worker process can hand it to its parent, decision and all."""
    limiter.hit(phone="1", cost=2)
    with pytest.raises(RateLimited) as caught, limiter.admitted(phone="1"):
        pass
    twin = pickle.loads(pickle.dumps(caught.value))
    assert str(twin) == str(caught.value)
    assert twin.decision.to_dict() == caught.value.decision.to_dict()


def test_async_generators_are_refused_or_limited_but_never_unlimited(limiter: Limiter, later: AsyncLimiter) -> None:
    """An async generator function is no coroutine function: Limiter limits its calls, AsyncLimiter names Limiter."""

    async def lines(phone: str) -> AsyncIterator[int]:
        yield 1

    limited = limiter.limited(lines)

    async def drain(made: Callable[[str], AsyncIterator[int]]) -> list[int]:
        return [line async for line in made("1")]

    assert asyncio.run(drain(limited)) == [1]
    assert asyncio.run(drain(limited)) == [1]
    with pytest.raises(RateLimited):
        limited("1")
    wrong: Callable[[str], Awaitable[int]] = lines  # type: ignore[assignment]
    with pytest.raises(TypeError, match="use Limiter"):
        later.limited(wrong)


@pytest.mark.parametrize("kind", [Limiter, AsyncLimiter])
def test_a_generator_does_not_give_its_place_back_before_it_works(kind: Any) -> None:
    """Its call ends before its work begins, so a limit of how many at once refuses to be put on it, and says how else."""
    slots = kind(Limit("slots", "1 at once for 60 s", by="phone"))

    def lines(phone: str) -> Iterator[int]:
        yield 1

    async def later(phone: str) -> AsyncIterator[int]:
        yield 1

    for function in (lines, later):
        with pytest.raises(TypeError, match=r"is a generator, .* inside it, with admitted\(\)"):
            slots.limited(function)
