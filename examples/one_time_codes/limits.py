"""What may be sent and what may be guessed. The numbers are a starting point, not a standard."""

from __future__ import annotations

import re
from typing import Final

from headway import AsyncLimiter, Limit
from headway.stores.base import AsyncStore

COSTS: Final = {"sms": 1, "voice": 3}
"""What a message costs, in units of one SMS."""

_PREFIX_DIGITS: Final = 7
_E164: Final = re.compile(r"\+[1-9][0-9]{7,14}")


def sending(store: AsyncStore | str, zone: str, secret_key: bytes, daily: int = 1000) -> AsyncLimiter:
    """Limits on what is sent, checked together: what one of them refuses is charged to none.

    Everything that says who somebody is leaves the process as a keyed hash only. Messages cost money, so without the
    store nothing is sent.

    Args:
        store: where counters live.
        zone: the IANA time zone whose midnight ends the day.
        secret_key: at least 16 bytes.
        daily: what may be sent to all phones together, in units of one SMS: what the day may cost at most.
    """
    day = f"day in {zone}"
    return AsyncLimiter(
        Limit("resend", "1 per 60s", by="phone", cost=1, secret=True, text="A code has just been sent to this phone."),
        Limit("per-phone", f"6 per {day}", by="phone", secret=True, text="This phone has had all its codes for today."),
        Limit("per-address", f"30 per {day}", by="ip", secret=True),
        Limit(
            "per-prefix", f"100 per {day}", by="prefix", secret=True, text="Too many codes for numbers like this one."
        ),
        Limit("everyone", f"{daily} per {day}", text="No more codes can be sent today."),
        store=store,
        namespace="codes-sent",
        secret_key=secret_key,
    )


def guessing(store: AsyncStore | str, secret_key: bytes) -> AsyncLimiter:
    """Limits on wrong codes: a code has a million values, so an hour's guesses find it once in 100 000 hours."""
    return AsyncLimiter(
        Limit("guesses", "10 per hour", by="phone", secret=True, text="Too many wrong codes for this phone."),
        Limit("guesses-here", "50 per hour", by="ip", secret=True, text="Too many wrong codes from this address."),
        store=store,
        namespace="codes-guessed",
        secret_key=secret_key,
    )


def read_phone(text: str, countries: tuple[str, ...]) -> str:
    """A number as people write it, as E.164: one phone is one counter, however its number is spelled.

    Raises:
        ValueError: no number, or one of a country we do not send to; the message is for the person.
    """
    digits = re.sub(r"[\s().\-/\u2010-\u2015]", "", text)
    digits = f"+{digits[2:]}" if digits.startswith("00") else digits
    if not _E164.fullmatch(digits):
        raise ValueError("Enter a phone number with its country code, such as +44 7700 900123.")
    if not digits.startswith(countries):
        raise ValueError(f"We can send codes to numbers that begin with {' or '.join(countries)} only.")
    return digits


def prefix_of(phone: str) -> str:
    """The block of numbers that somebody who pumps messages buys together."""
    return phone[: 1 + _PREFIX_DIGITS]
