"""Which form of a refusal a client accepts (RFC 9110 §12.5.1)."""

from __future__ import annotations

from typing import Final

from headway.presentation.weights import weights

__all__ = ["HTML", "PLAIN", "PROBLEM", "choose_form"]

PROBLEM: Final = "application/problem+json"
HTML: Final = "text/html"
PLAIN: Final = "text/plain"

_FORMS: Final = ((PROBLEM, "application/json"), (PLAIN,), (HTML, "application/xhtml+xml"))
"""In the order that decides between equal weights; the further names of a form ask for it as well."""


def choose_form(accept: str | None) -> str:
    """``PROBLEM``, ``PLAIN`` or ``HTML``: the one with the highest weight; ``PROBLEM`` where nothing is preferred.

    Args:
        accept: the ``Accept`` field's value, several lines joined by commas, or None.
    """
    ranges = [(name.lower(), weight) for name, weight in weights(accept or "")]
    best, chosen = 0.0, PROBLEM
    for names in _FORMS:
        weight = max(_weight(name, ranges) for name in names)
        if weight > best:
            best, chosen = weight, names[0]
    return chosen


def _weight(media_type: str, ranges: list[tuple[str, float]]) -> float:
    """The weight of the most specific range that names the type; 0 where none does."""
    kind = media_type.split("/", 1)[0]
    for wanted in (media_type, f"{kind}/*", "*/*"):
        found = [weight for name, weight in ranges if name == wanted]
        if found:
            return max(found)
    return 0.0
