"""Whether caches keep a refusal, and whether scripts in a browser can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headway.analysis.lint.facts import CAPACITY, Facts
from headway.analysis.lint.hints import http_date

__all__ = ["check"]

_FRESH: Final = re.compile(r"(?:s-maxage|max-age)=\"?([0-9]{1,12})")


def check(facts: Facts) -> Iterator[tuple[str, str]]:
    """(rule, message) of what caches and browsers would make of the answer."""
    yield from _exposed(facts)
    if facts.kind is None or facts.grpc or not (facts.limited or facts.kind in CAPACITY or facts.status == 429):
        return
    if facts.age:
        yield "cached-refusal", f"Age is {facts.age} s"
    control = (facts.field("cache-control") or "").lower()
    if "no-store" in control:
        return
    kept = _kept(facts, control)
    if kept:
        yield "cacheable-refusal", kept
    else:
        shown = f"Cache-Control is {control!r}" if control else "there is no Cache-Control"
        yield "no-store-missing", f"{shown}; send no-store"


def _kept(facts: Facts, control: str) -> str | None:
    """Why a cache may keep it; None where nothing says so."""
    if any(int(found) > 0 for found in _FRESH.findall(control)) or re.search(r"\bpublic\b", control):
        return f"Cache-Control is {control!r}"
    if "max-age=0" in control or "no-cache" in control or "private" in control:
        return None
    expires = http_date(facts.field("expires") or "")
    if expires is not None and facts.now is not None and expires > facts.now:
        return f"Expires is {expires - facts.now:,.0f} s ahead"
    if facts.status in (200, 203, 404, 410):  # cacheable by default (RFC 9110 §15.1)
        return f"a {facts.status} may be kept without being told to"
    return None


def _exposed(facts: Facts) -> Iterator[tuple[str, str]]:
    if "access-control-allow-origin" not in facts.fields or not facts.limit_fields:
        return
    exposed = {name.strip().lower() for name in (facts.field("access-control-expose-headers") or "").split(",")}
    credentials = (facts.field("access-control-allow-credentials") or "").lower() == "true"
    hidden = [name for name in facts.limit_fields if name not in exposed]
    if hidden and not ("*" in exposed and not credentials):
        yield "cors-not-exposed", f"Access-Control-Expose-Headers does not name {', '.join(hidden)}"
