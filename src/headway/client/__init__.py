"""Budget before sending, read other people's refusals, wait as told.

`read` reads a refusal; `Pace` waits before sending; `Retry` says when to try again, and `patient` and `attempts` do it
for any function or block. Transports for httpx, httpx2, requests, aiohttp and urllib3 are in `transport_…`.
"""

from typing import TYPE_CHECKING, Any

from headway.client.reading import read
from headway.client.rejection import Rejection, RejectionKind

if TYPE_CHECKING:
    from headway.client.abort import Abort
    from headway.client.pace import AsyncPace, Pace
    from headway.client.retry import Retry
    from headway.client.slot import AsyncSlot, Slot
    from headway.client.wrap import attempts, patient

__all__ = [
    "Abort",
    "AsyncPace",
    "AsyncSlot",
    "Pace",
    "Rejection",
    "RejectionKind",
    "Retry",
    "Slot",
    "attempts",
    "patient",
    "read",
]

_WHEN_ASKED_FOR = {
    "Abort": "abort",
    "AsyncPace": "pace",
    "AsyncSlot": "slot",
    "Pace": "pace",
    "Retry": "retry",
    "Slot": "slot",
    "attempts": "wrap",
    "patient": "wrap",
}
"""Names that reading does without, and the modules that are loaded when one is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module 'headway.client' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"headway.client.{_WHEN_ASKED_FOR[name]}"), name)
    return found
