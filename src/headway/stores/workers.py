"""Worker processes that the surroundings tell of: a memory store counts in each of them by itself."""

from __future__ import annotations

import os

__all__ = ["each_by_itself"]


def each_by_itself() -> str | None:
    """What a memory store means for several workers, in a sentence; None where no more than one is known of.

    Source: WEB_CONCURRENCY, which uvicorn and gunicorn start that many workers for. Workers told of on a command line
    alone are not seen.
    """
    told = os.environ.get("WEB_CONCURRENCY", "")
    count = int(told) if told.isascii() and told.isdigit() and len(told) < 6 else 1
    if count < 2:
        return None
    return (
        f"WEB_CONCURRENCY is {count}, and a memory store counts in each process by itself: {count} workers together admit "
        f"up to {count} times each limit; name a store that they share, such as sqlite:////var/lib/app/limits.db"
    )
