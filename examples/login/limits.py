"""Limits on failed logins. A success counts nothing, and clears what failed from the same place.

Follows NIST SP 800-63B §5.2.2 (waits that grow from 30 seconds to an hour, far fewer than 100 failures in a row from one
place) and OWASP's device cookies against the lock-out of others.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from headway import AsyncLimiter, Limit, When
from headway.stores.base import AsyncStore

HERE: Final = "here"
"""The limit that a success clears."""

_LONGEST_NAME = 200


def failures(store: AsyncStore | str, secret_key: bytes) -> AsyncLimiter:
    """What may fail.

    A *place* is a known device, or else an address. Whoever guesses from one place waits longer each time. Guesses from
    many places meet the limit on the account, and guesses at many accounts the limit on the address; a known device
    meets neither, so its owner gets in whatever strangers do.

    Args:
        store: where counters live.
        secret_key: at least 16 bytes: names and places leave the process as keyed hashes only.
    """
    stranger = {"known": "no"}
    return AsyncLimiter(
        Limit(
            HERE,
            "1 per 30s burst 5",
            by=("account", "place"),
            algorithm="growing-wait",
            longest="1 hour",
            forgiven_after="1 day",
            secret=True,
            text="Too many wrong passwords.",
        ),
        When(stranger, Limit("account", "100 per day", by="account", secret=True, text="Too many wrong passwords.")),
        When(stranger, Limit("address", "50 per hour", by="ip", secret=True, text="Too many wrong passwords.")),
        store=store,
        namespace="failed-logins",
        secret_key=secret_key,
    )


def account_of(name: str) -> str:
    """A name as it is looked up and counted: spelled in another case or width it is the same account."""
    return unicodedata.normalize("NFKC", name).strip().casefold()[:_LONGEST_NAME]
