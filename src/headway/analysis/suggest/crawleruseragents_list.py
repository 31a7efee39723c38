"""The list of crawlers' user agents that many projects keep together (``crawler-user-agents``)."""

from __future__ import annotations

import re
from functools import cache

import crawleruseragents  # type: ignore[import-untyped]  # it has no types

__all__ = ["find_crawler"]

_CHUNK = 25


def find_crawler(agent: str) -> tuple[str, tuple[str, ...]] | None:
    """The name and the tags (such as "search-engine", "scanner", "http-library") of the crawler that an agent says it is."""
    for chunk, patterns in _chunks():
        if chunk.search(agent):
            for pattern, name, tags in patterns:
                found = re.search(pattern, agent)
                if found:
                    return found[0].strip(" /;()^$") or name, tags
    return None


@cache
def _chunks() -> tuple[tuple[re.Pattern[str], tuple[tuple[str, str, tuple[str, ...]], ...]], ...]:
    entries = [
        (entry["pattern"], re.sub(r"\\|\[\w\w\]|\^", "", entry["pattern"]), tuple(entry.get("tags", ())))
        for entry in crawleruseragents.CRAWLER_USER_AGENTS_DATA
    ]
    return tuple(
        (re.compile("|".join(f"(?:{pattern})" for pattern, _, _ in part)), tuple(part))
        for part in (entries[at : at + _CHUNK] for at in range(0, len(entries), _CHUNK))
    )
