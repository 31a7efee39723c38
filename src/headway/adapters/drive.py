"""Guards written once: flows that yield what may have to be awaited, and the two drivers that wait for it, or refuse to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

__all__ = ["Asking", "drive", "drive_async"]

T = TypeVar("T")

Asking = Generator[Any, Any, T]
"""Yields an answer or an awaitable of one, and is sent the answer."""


def drive(flow: Asking[T]) -> T:
    """Run a flow where nothing can be awaited.

    Raises:
        TypeError: something is async: names it.
    """
    try:
        answer = next(flow)
        while True:
            if hasattr(answer, "__await__"):
                name = getattr(answer, "__qualname__", repr(answer))
                getattr(answer, "close", lambda: None)()
                answer = flow.throw(
                    TypeError(f"{name}() is async, and nothing can be awaited here: give a plain function")
                )
                continue
            answer = flow.send(answer)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def drive_async(flow: Asking[T]) -> T:
    """Run a flow, awaiting what has to be."""
    try:
        answer = next(flow)
        while True:
            if hasattr(answer, "__await__"):
                try:
                    answer = await answer
                except BaseException as error:  # the flow decides; what it does not catch comes out again
                    answer = flow.throw(error)
                    continue
            answer = flow.send(answer)
    except StopIteration as stop:
        value: T = stop.value
        return value
