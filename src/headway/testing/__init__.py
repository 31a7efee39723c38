"""For tests of limited code and of stores: a clock that moves when told, and the contract every store has to keep.

What is asked for is loaded then: the pytest plugin lives beside it and is loaded in every run, used or not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headway.testing._blocking import blocking
    from headway.testing.clock import ManualClock
    from headway.testing.conformance import StoreConformance
    from headway.testing.isolation import Isolation, isolated

__all__ = ["Isolation", "ManualClock", "StoreConformance", "blocking", "isolated"]

_HOME: Final = {
    "Isolation": "isolation",
    "ManualClock": "clock",
    "StoreConformance": "conformance",
    "blocking": "_blocking",
    "isolated": "isolation",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"headway.testing.{_HOME[name]}"), name)
