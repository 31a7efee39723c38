"""Where a language model is called. This one echoes the prompt's words; replace it with a client of yours."""

from __future__ import annotations

from collections.abc import AsyncIterator


def count_tokens(text: str) -> int:
    """An upper bound of a text's tokens: here, its words."""
    return len(text.split())


async def generate(prompt: str, max_tokens: int) -> AsyncIterator[str]:
    """The answer's tokens, one after the other, at most so many."""
    for word in prompt.split()[:max_tokens]:
        yield word
